"""The media types returned by detection, and the extensions and file names that map to them."""

from __future__ import annotations

import mimetypes

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
EPUB = "application/epub+zip"
EMAIL = "message/rfc822"
HTML = "text/html"
XML = "application/xml"
JSON = "application/json"
JSON_LINES = "application/jsonl"
NOTEBOOK = "application/x-ipynb+json"
MARKDOWN = "text/markdown"
RST = "text/x-rst"
LATEX = "text/x-tex"
ORG = "text/x-org"
ASCIIDOC = "text/asciidoc"
PLAIN = "text/plain"
SRT = "application/x-subrip"
VTT = "text/vtt"
CSV = "text/csv"
TSV = "text/tab-separated-values"
SOURCE = "text/x-source"
PNG = "image/png"
JPEG = "image/jpeg"
WEBP = "image/webp"
GIF = "image/gif"
TIFF = "image/tiff"
HEIC = "image/heic"

DOC = "application/msword"
PPT = "application/vnd.ms-powerpoint"
MSG = "application/vnd.ms-outlook"
MBOX = "application/mbox"
RTF = "application/rtf"
ZIP = "application/zip"
GZIP = "application/gzip"
BZIP2 = "application/x-bzip2"
XZ = "application/x-xz"
ZSTD = "application/zstd"
OLE = "application/x-ole-storage"
OCTETS = "application/octet-stream"


def _table(lines: str) -> dict[str, str]:
    """Parse lines of `type: key key key` to a mapping of key to type."""
    table = {}
    for line in lines.strip().splitlines():
        media_type, _, keys = line.strip().partition(": ")
        table.update(dict.fromkeys(keys.split(), media_type))
    return table


BY_EXTENSION = _table(f"""
    {PDF}: pdf
    {DOCX}: docx docm dotx dotm
    {PPTX}: pptx pptm potx ppsx ppsm
    {XLSX}: xlsx xlsm xltx xltm
    {XLS}: xls xlt
    {XLSB}: xlsb
    {ODT}: odt ott
    {ODS}: ods ots
    {ODP}: odp otp
    {EPUB}: epub
    {EMAIL}: eml mht mhtml
    {HTML}: html htm xhtml xht shtml
    {XML}: xml rss atom rdf svg xsd xsl xslt wsdl kml gpx plist opml xaml csproj vcxproj fodt fods tei jats nxml dita
    {JSON}: json geojson webmanifest jsonld har topojson
    {JSON_LINES}: jsonl ndjson jsonlines
    {NOTEBOOK}: ipynb
    {MARKDOWN}: md markdown mdown mkd mkdn mdwn mdx qmd rmd
    {RST}: rst rest
    {LATEX}: tex ltx latex
    {ORG}: org
    {ASCIIDOC}: adoc asciidoc asciidoctor
    {PLAIN}: txt text log asc textile nfo ics vcf diff patch bib po pot
    {SRT}: srt
    {VTT}: vtt
    {CSV}: csv
    {TSV}: tsv tab
    {PNG}: png apng
    {JPEG}: jpg jpeg jpe jfif
    {WEBP}: webp
    {GIF}: gif
    {TIFF}: tif tiff
    {HEIC}: heic heif
    text/x-python: py pyi pyw
    text/x-javascript: js mjs cjs jsx
    text/x-typescript: ts tsx mts cts
    text/x-rust: rs
    text/x-go: go
    text/x-java: java
    text/x-c: c h
    text/x-c++: cpp cc cxx c++ hpp hh hxx h++ ino cu cuh
    text/x-sh: sh bash zsh ksh bats
    text/x-sql: sql ddl dml
    text/x-toml: toml
    text/x-yaml: yaml yml
    text/x-ini: ini cfg conf cnf properties editorconfig desktop env service gitconfig npmrc flake8
    {SOURCE}: rb php pl pm lua r jl kt kts swift scala groovy gradle cs fs vb m mm dart ex exs erl hrl hs lhs ml mli
    {SOURCE}: clj cljs cljc edn lisp lsp el scm rkt vue svelte astro css scss sass less styl proto thrift graphql gql
    {SOURCE}: tf tfvars hcl nix zig nim v vh sv vhd vhdl asm s f f90 f95 for pas d cr coffee tcl awk sed fish ps1 psm1
    {SOURCE}: bat cmd cmake mk make dockerfile jinja jinja2 j2 erb ejs hbs mustache liquid twig jsp asp aspx cshtml sol
    {SOURCE}: bzl bazel star ipp idl pyx pxd cob cbl abap apex prolog pro vim gd glsl frag vert hlsl wgsl metal rego cue
    {DOC}: doc dot
    {PPT}: ppt pps pot
    {MSG}: msg
    {RTF}: rtf
    {ZIP}: zip jar whl
    application/postscript: ps eps
    {MBOX}: mbox mbx
    application/vnd.apple.pages: pages
    application/vnd.apple.numbers: numbers
    application/vnd.apple.keynote: key
    application/x-mobipocket-ebook: mobi azw azw3
    image/vnd.djvu: djvu djv
    image/bmp: bmp dib
    image/avif: avif
    audio/mpeg: mp3
    audio/wav: wav
    audio/mp4: m4a
    audio/ogg: ogg oga opus
    audio/flac: flac
    video/mp4: mp4 m4v
    video/quicktime: mov
    video/webm: webm
    video/x-matroska: mkv
    video/x-msvideo: avi
    {GZIP}: gz tgz svgz
    {BZIP2}: bz2 tbz2
    {XZ}: xz txz
    {ZSTD}: zst tzst
    application/x-tar: tar
    application/x-7z-compressed: 7z
    application/vnd.rar: rar
    application/vnd.apache.parquet: parquet
    application/vnd.sqlite3: sqlite sqlite3
""")
"""extension in lower case, without its dot -> media type"""

_EXTENSIONS = {media_type: extension for extension, media_type in reversed(BY_EXTENSION.items())}
"""media type -> its first extension"""

BY_NAME = _table(f"""
    {SOURCE}: makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile gemfile rakefile procfile justfile
    {SOURCE}: cmakelists.txt build workspace
    text/x-ini: .gitignore .dockerignore .gitattributes .gitmodules .npmrc .pylintrc .coveragerc
    text/x-sh: .bashrc .bash_profile .profile .zshrc .zprofile pkgbuild
    text/x-toml: cargo.lock poetry.lock uv.lock pipfile
    {JSON}: .babelrc .eslintrc pipfile.lock composer.lock flake.lock
    text/x-yaml: .clang-format .clang-tidy
""")
"""whole file name in lower case -> media type, before the extension is looked at"""

BY_INTERPRETER = _table(f"""
    text/x-python: python pypy uv
    text/x-sh: sh bash zsh dash ksh ash bats
    text/x-javascript: node nodejs deno bun
    text/x-typescript: ts-node tsx
    {SOURCE}: perl ruby php lua rscript julia awk gawk sed tclsh wish fish pwsh make guile osascript groovy expect
""")
"""program on a `#!` line, without its version -> media type"""

STRICTLY_PARSED = frozenset({JSON, JSON_LINES, NOTEBOOK, XML})
"""text types whose parsers reject anything else"""

DESCRIBED_PICTURES = frozenset({PNG, JPEG, WEBP, GIF})
"""pictures that language models take"""

COMPRESSED = {GZIP: ".gz", BZIP2: ".bz2", XZ: ".xz", ZSTD: ".zst"}
"""format that packs one file -> its usual ending"""

OFFICE_ZIPS = frozenset({DOCX, PPTX, XLSX, XLSB, ODT, ODS, ODP, EPUB})
"""formats that are zip archives of parts"""


def is_text(media_type: str) -> bool:
    """Return True if documents of this type are text that a person can read directly."""
    return media_type.startswith("text/") or media_type in {*STRICTLY_PARSED, EMAIL, SRT}


def is_source_code(media_type: str) -> bool:
    """Return True if documents of this type are programs or configuration files."""
    return media_type.startswith("text/x-") and media_type not in {RST, LATEX, ORG}


_ENDINGS_INSIDE = {
    **dict.fromkeys(COMPRESSED.values(), ""),
    **{".svgz": ".svg", ".tgz": ".tar", ".tbz2": ".tar", ".txz": ".tar", ".tzst": ".tar"},
}
"""ending of a compressed file -> what stands for it in the name of the document inside"""


def name_inside(filename: str) -> str:
    """Return the name of the document in a compressed file: `rules.md` in `rules.md.gz`."""
    stem, dot, ending = filename.rpartition(".")
    ending = f"{dot}{ending}".lower()
    return stem + _ENDINGS_INSIDE[ending] if stem and ending in _ENDINGS_INSIDE else filename


UTF8_PER_CHARACTER = 4
"""maximum bytes of a character in UTF-8"""
UTF8_PER_BYTE = 3
"""maximum bytes of UTF-8 text per byte of a document that keeps its size, from a single-byte encoding or from NFC"""


def keeps_its_size(filename: str) -> bool:
    """Return True if documents of this name contain their text directly, with nothing unpacked or added."""
    media_type = by_filename(filename)
    return media_type in (MARKDOWN, PLAIN, SRT, VTT) or (media_type is not None and is_source_code(media_type))


def with_extension(filename: str, media_type: str | None) -> str:
    """Return a file name with the extension of its declared media type, if it has none that is known."""
    if media_type is None or by_filename(filename) is not None:
        return filename
    plain = media_type.partition(";")[0].strip().lower()
    extension = _EXTENSIONS.get(plain) or (mimetypes.guess_extension(plain) or "").removeprefix(".")
    return f"{filename}.{extension}" if extension in BY_EXTENSION else filename


def by_filename(filename: str) -> str | None:
    """Return the media type of a file name; None if it is unknown."""
    name = filename.rsplit("/", 1)[-1].strip().lower()
    if name in BY_NAME:
        return BY_NAME[name]
    stem, dot, extension = name.rpartition(".")
    if not dot:
        return None
    return BY_EXTENSION.get(extension) if stem or extension in {"env", "editorconfig", "npmrc", "flake8"} else None
