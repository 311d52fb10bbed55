"""Control words of rich text and what they stand for. RTF specification 1.9.1."""

from __future__ import annotations

CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "\u2014", "endash": "\u2013", "emspace": " ", "enspace": " ", "qmspace": " ",
    "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d",
    "~": "\u00a0", "_": "\u2011", "{": "{", "}": "}", "\\": "\\", "nestcell": "; ", "nestrow": "\n",
}  # fmt: skip
"""control word or symbol -> the characters that it stands for"""
LEFT_OUT = frozenset(
    {
        "colortbl", "pict", "fldinst", "sn", "sv", "sp", "xe", "tc", "rxe", "txe", "bxe", "nonesttables", "filetbl",
        "shprslt", "nonshppict", "template", "private", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn",
        "mmath", "objdata", "objname", "objclass", "revtbl", "rsidtbl", "generator", "latentstyles", "themedata",
        "datafield", "formfield", "listtable", "listoverridetable", "pntxta", "pntxtb", "panose", "falt", "bkmkstart",
        "bkmkend", "atnref", "atrfstart", "atrfend", "atnid", "atndate", "xmlnstbl", "nextfile", "userprops", "htmltag",
    }
)  # fmt: skip
"""groups whose text is no text of the document"""
SHOWN = frozenset({"shpinst", "do", "result", "shptxt", "dptxbxtext", "fldrslt", "nesttableprops", "mr", "footnote"})
"""groups whose text is shown, although they may be marked as ones to be ignored or be part of one that is left out"""
BOXES = frozenset({"shptxt", "dptxbxtext"})
"""groups with the text of a text box"""
RUNNING = frozenset({"header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"})
"""groups with the text at the edges of pages"""
INFORMATION = {
    "title": "title", "author": "author", "operator": "last_modified_by", "subject": "subject", "keywords": "keywords",
    "doccomm": "description", "category": "category", "company": "company", "creatim": "created", "revtim": "modified",
}  # fmt: skip
"""group of the document's properties -> its name for all formats"""
TIME = ("yr", "mo", "dy", "hr", "min")
CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5hkscs", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
"""character set of a font -> encoding; others have that of the document"""
SYMBOLS = 2
"""character set of fonts of signs"""
