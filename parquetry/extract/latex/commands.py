"""The commands of LaTeX that have a meaning for the text."""

from __future__ import annotations

SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
RAW = frozenset({"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "alltt"})
DROPPED_BLOCKS = frozenset({"comment", "filecontents", "filecontents*", "tikzpicture", "pgfpicture", "picture"})
FORMULAS = frozenset(
    f"{name}{star}"
    for name in (
        "equation",
        "align",
        "gather",
        "multline",
        "eqnarray",
        "displaymath",
        "math",
        "flalign",
        "alignat",
        "dmath",
    )
    for star in ("", "*")
)
TABLES = {"tabular": 0, "tabular*": 1, "tabularx": 1, "tabulary": 1, "longtable": 0, "supertabular": 0}
"""environment -> arguments before that of its columns"""
LISTS = frozenset({"itemize", "enumerate", "description", "compactitem", "compactenum"})
RULES = frozenset({"hline", "toprule", "midrule", "bottomrule", "cline", "cmidrule", "endhead", "endfirsthead"})
ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323",
    "b": "\u0331",
}  # fmt: skip
LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "o": "ø", "O": "Ø", "l": "ł",
    "L": "Ł", "i": "i", "j": "j", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "ldots": "…", "dots": "…",
    "textellipsis": "…", "S": "§", "P": "¶", "dag": "†", "ddag": "‡", "copyright": "©", "textcopyright": "©",
    "pounds": "£", "euro": "€", "texteuro": "€", "textregistered": "®", "texttrademark": "™", "textdegree": "°",
    "degree": "°", "textendash": "–", "textemdash": "—", "textbackslash": "\\", "textasciitilde": "~",
    "textasciicircum": "^", "textunderscore": "_", "textbar": "|", "textless": "<", "textgreater": ">",
    "textquoteright": "’", "textquoteleft": "‘", "textbullet": "•", "textperiodcentered": "·", "TeX": "TeX",
    "LaTeX": "LaTeX", "BibTeX": "BibTeX", "slash": "/", "quad": " ", "qquad": " ", "space": " ", "newline": " ",
    "linebreak": " ", "today": "", "and": ", ",
}  # fmt: skip
SYMBOLS = {",": " ", ";": " ", ":": " ", " ": " ", "\n": " ", "!": "", "/": "", "-": "", "@": ""}
QUOTES = (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”"))
DROPPED = {
    "label": 1, "vspace": 1, "hspace": 1, "includegraphics": 1, "usepackage": 1, "bibliographystyle": 1,
    "documentclass": 1, "pagestyle": 1, "thispagestyle": 1, "setlength": 2, "addtolength": 2, "setcounter": 2,
    "addtocounter": 2, "newcommand": 2, "renewcommand": 2, "providecommand": 2, "newenvironment": 3,
    "renewenvironment": 3, "newtheorem": 2, "color": 1, "textcolor": 1, "index": 1, "glsadd": 1, "rule": 2,
    "bibitem": 1, "cline": 1, "cmidrule": 1, "pagenumbering": 1, "fontsize": 2, "addcontentsline": 3, "hyphenation": 1,
    "phantom": 1, "hypersetup": 1, "definecolor": 3, "colorbox": 1, "raisebox": 1, "scalebox": 1, "resizebox": 2,
    "parbox": 1, "theoremstyle": 1, "DeclareMathOperator": 2, "graphicspath": 1, "nocite": 1, "vskip": 0, "hskip": 0,
}  # fmt: skip
"""command -> arguments that are no text"""
NAMED = frozenset({
    "ref", "eqref", "pageref", "autoref", "cref", "Cref", "nameref", "cite", "citep", "citet", "parencite", "textcite",
    "autocite", "footcite",
})  # fmt: skip
FILES = frozenset({"input", "include", "subfile", "bibliography", "addbibresource"})
