"""Detection of statements that are orders to a reader rather than knowledge, as an injected text would have kept."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from parquetry.sessions.distill.recall_filter import words

PROMPT_ECHO = 0.6
"""share of a statement's pairs of neighbouring words found in the prompt, from which it counts as its echo"""
_PROMPT_WORDS = 5
"""minimum words of an echo; a shorter statement is none, whatever it shares with the prompt"""

_KEPT = r"""(?:memor(?:y|ies)|entr(?:y|ies)|knowledge(?:\s+(?:base|entr(?:y|ies)))?|facts?|records?|notes?|learnings?|
    decisions?|preferences?|statements?|conversations?|sessions?|scopes?|candidates?|ordinals?)"""
"""contents of a memory"""
_TOLD = r"""(?:instructions?|prompts?|rules?|guidelines?|directives?|orders|constraints?|policies|safeguards?|commands|
    restrictions?|filters?|guardrails?|system\s+messages?|(?:said|told|written|stated)\s+(?:before|above|earlier))"""
"""names of what a model is given as instructions"""
_WHICH = r"""(?:(?:all|any|every|each|the|your|these|those|my|its|of|previous|prior|earlier|above|preceding|former|
    existing|old|other|known|stored|saved|current|initial|original|system|developer|safety|and|or|everything|with|about|
    users?['’]?s?)\s+){0,6}"""
_MODEL = r"""(?:assistant|memory(?:\s+system)?|knowledge\s+(?:base|system)|distiller|extractor|language\s+model|llm|
    ai(?:\s+(?:model|assistant))?)"""
_BEGINS = r"(?:^|[.:;!?]\s+|\bplease\s+|\byou\s+(?:must|should|will|have\s+to)\s+)"
"""beginning of an order, as opposed to a description"""

_PUT_ASIDE = rf"""
      \b(?:ignore|disregard|forget|override|overrule|bypass|neglect|skip|circumvent|drop|violate|stop\s+following|
           pay\s+no\s+attention\s+to)\s+ {_WHICH} {_TOLD}
    | {_BEGINS} (?:do\s+not|don['’]?t|never)\s+(?:follow|obey|apply)\s+ {_WHICH} {_TOLD}
    | \b(?:ignore|disregard|forget)\s+(?:everything|all(?:\s+of)?\s+(?:that|this|it|the\s+above|previous)|
           (?:the|all)\s+(?:above|previous|foregoing)|what\s+(?:you|was|came|i))\b
"""
_CHANGE_WHAT_IS_KEPT = rf"""
      \b(?:delete|erase|remove|purge|wipe|clear|drop|destroy|forget|retire|supersede|invalidate|overwrite|reset|discard|
           replace|merge|undo|revoke)\s+
        (?:all|any|every|each|everything|the\s+(?:whole|entire)|your|previous|prior|existing|other|stored|saved|known)\s+
        (?:(?:of|the|your|other|users?['’]?s?|previous|existing|stored|saved|known|old|in|from|about|candidate)\s+){{0,4}}
        (?:{_KEPT}\b|into\s+(?:one|this)|with\s+this|by\s+this)
    | \b(?:delete|erase|remove|purge|wipe|retire|supersede|invalidate|overwrite)\s+
        (?:entr(?:y|ies)|ordinals?|candidates?)\s+(?:number\s+)?[\#\d]
    | \b(?:forget|delete|erase|wipe)\s+everything\b
"""
_SHOW_OR_TRUST = rf"""
      \b(?:mark|set|make|store|save|publish|classify|label|tag|treat|share|record|remember|keep|expose|promote|declare)\s+
        (?:(?:all|any|every|each|of|the|my|his|her|their|your|other|this|that|these|those|following|above|entire|
           users?['’]?s?)\s+){{0,4}}
        (?:it|this|that|these|them|everything|all|{_KEPT}|information|data|content|text|message|secrets?|level|
           visibility|scope)\b
        (?:[^.]{{0,40}}?\b(?:as|to|at|with|is)\s+|\s*[=:]\s*|\s+)(?:an?\s+|the\s+)?["'\u201c]?
        (?:public\b(?!\s+(?:because|only|methods?|apis?|class))|organi[sz]ation[-\s]?wide|visible\s+to\s+(?:all|every\w*)|
           globally|confidence|(?:highest|maximum|full)\s+(?:confidence|priority|trust)|verified|trusted|authoritative)\b
    | \b(?:visibility|level|scope|access)\s*(?:=|:|must\s+be|should\s+be|to)\s*["'\u201c]?
        (?:public|organization|individual)\b
    | \b(?:set|with|use|give\s+it)\s+(?:a\s+|the\s+)?confidence\s*(?:of|to|=|:)?\s*(?:1|0?\.\d+|100)
    | \bconfidence\s*(?:=|:|of|score\s+of)\s*(?:1(?:\.0+)?|0?\.9\d*|100\s?%)
"""
_BE_OR_SAY = rf"""
      \byou\s+are\s+now\b | \byou\s+are\s+no\s+longer\s+(?:bound|restricted|limited|an?\s+{_MODEL})
    | \bfrom\s+now\s+on,?\s+(?:you|the\s+{_MODEL})\b
    | \b(?:pretend|act|behave|respond|answer|reply)\s+(?:to\s+be|as\s+if|as\s+though|
        as\s+(?:an?\s+)?(?:unrestricted|uncensored|admin\w*|root|developer|system|dan)\b)
    | {_BEGINS} (?:reply|respond|answer|output|print)\s+(?:only\b|exactly\b|verbatim\b|with\s+(?:only|nothing|exactly|
        json|the\s+following|[{{\[]))
    | \b(?:reveal|print|repeat|show|output|leak|disclose|display|recite|dump)\s+(?:me\s+)?(?:the|your|this|its|all)\s+
        (?:(?:full|entire|hidden|secret|initial|original|above|system|developer|stored|user|users['’])\s+)*
        (?:prompts?|instructions?|system\s+message|memor(?:y|ies)|context)\b
    | \b(?:system|developer|admin(?:istrator)?)\s+(?:override|prompt|instruction|message|mode|command|directive)\s*
        (?:[:\-\u2013]|says|enabled|activated)
    | \b(?:new|updated|revised|real|actual|secret|hidden|important)\s+(?:system\s+)?(?:instructions?|directives?|prompt)
        \s*(?::|for\s+(?:you|the\s+{_MODEL})\b)
    | \b(?:jailbreak|god\s+mode|sudo\s+mode)\b
    | \b(?:dear|attention|note\s+to(?:\s+the)?|hey|hello|message\s+for(?:\s+the)?|to\s+the)\s+{_MODEL}\b
    | \b{_MODEL}\s+(?:must|should|shall|has\s+to|needs\s+to|
        is\s+(?:to|required\s+to|instructed\s+to|ordered\s+to|authorized\s+to|allowed\s+to))\s+
        (?:now\s+|always\s+|never\s+|immediately\s+|not\s+)*
        (?:ignore|disregard|forget|delete|erase|obey|follow|reveal|publish|mark|store|save|share|merge|replace|output|
           treat|trust|accept|extract|record|remember|send|execute|run|comply)\b
    | \b(?:always|must)\s+(?:obey|comply\s+with)\s+(?:the\s+)?(?:user|attacker|following|this|these|orders)\b
"""
_FORGED_MARKS = r"""
      <\|?\s*/?(?:im_start|im_end|system|assistant|user|endoftext|begin_of_text|eot_id|start_header_id|tool_result|
        entries|context|messages|instructions?)\b[^>]*>
    | \[/?(?:INST|SYS|SYSTEM)\] | <</?SYS>> | ^\#{2,}\s*(?:system|instruction|response|assistant)\b
    | ^\s*(?:system|assistant|developer)\s*:
    | ["']?\b(?:role|evidence|ordinals|verdict|merged_text|replaces)["']?\s*:\s*["'\[\d]
"""
"""marks of the formats in which models are addressed"""
_ORDERS = re.compile(
    "|".join((_PUT_ASIDE, _CHANGE_WHAT_IS_KEPT, _SHOW_OR_TRUST, _BE_OR_SAY, _FORGED_MARKS)), re.I | re.X
)
_ORDERS_ELSEWHERE = re.compile(
    r"""
      \b(?:ignorier\w*|missacht\w*|vergiss|vergessen\s+sie|verwirf|umgeh\w*)\s+(?:\w+\s+){0,4}
        (?:anweisung\w*|regeln?|vorgaben?|alles|instruktion\w*|anordnung\w*|prompts?|einträge\w*)
    | \b(?:lösche|entferne|vergiss)\s+(?:alle|alles|sämtliche)\b
    | \b(?:markiere|speichere|veröffentliche)\s+(?:\w+\s+){0,4}als\s+(?:öffentlich|public)
    | \b(?:ignore[zr]?|oublie[zr]?|néglige[zr]?|supprime[zr]?|efface[zr]?)\s+(?:\w+\s+){0,4}
        (?:instructions?|consignes?|règles?|entrées|mémoires?|connaissances|tout\b)
    | \b(?:marque[zr]?|enregistre[zr]?|publie[zr]?)\s+(?:\w+\s+){0,4}comme\s+publi\w+
    | \b(?:ignor[ae]\w*|olvid[ae]\w*|descart[ae]\w*|elimin[ae]\w*|dimentica\w*|esque[cç]\w+|desconsider\w+)\s+
        (?:\w+\s+){0,4}(?:instruccion\w*|reglas|indicaciones|entradas|memorias|todo\b|istruzion\w*|regole|instruç\w+|
        regras|tudo\b|tutt[oe]\b)
    | \b(?:marca|guarda|publica)\s+(?:\w+\s+){0,4}(?:como|come)\s+p[uú]bb?lic\w+
    | \b(?:negeer|vergeet|verwijder)\s+(?:\w+\s+){0,4}(?:instructies|regels|alles|herinneringen)
    | (?:игнорируй\w*|забуд\w*|удали\w*)\s+(?:\w+\s+){0,4}(?:инструкц\w*|правил\w*|записи|вс[её]\b)
    | (?:忽略|无视|無視|忘记|忘掉|删除|刪除).{0,12}(?:指令|指示|规则|记忆|条目|所有|一切)
    | (?:指示|命令|ルール|記憶|エントリ).{0,6}(?:無視|忘れ|削除)
    | (?:지시|명령|규칙|기억).{0,8}(?:무시|잊어|삭제)
    """,
    re.I | re.X,
)


def is_instruction(statement: str, prompt: str) -> bool:
    """Return True if a statement is an order to a model or a memory, or echoes the prompt, rather than knowledge.

    Patterns catch orders in plain words. An order in other words becomes an ordinary entry: code decides its scope, its
    visibility and what it may supersede, and readers treat it as data.

    Args:
        statement: that a model proposes to keep.
        prompt: given to the model.
    """
    statement = unicodedata.normalize("NFKC", statement)
    if _ORDERS.search(statement) or _ORDERS_ELSEWHERE.search(statement):
        return True
    said = words(statement)
    if len(said) < _PROMPT_WORDS:
        return False
    pairs, known = set(pairwise(said)), set(pairwise(words(prompt)))
    return len(pairs & known) >= PROMPT_ECHO * len(pairs)
