"""Statements without knowledge: greetings, thanks, questions, offers of help, headings, remarks on the chat itself."""

from __future__ import annotations

import re
import unicodedata

_TURNS = """
    hello|hi|hey|howdy|greetings|good (?:morning|afternoon|evening|night|day)|welcome|bye|goodbye|good bye|farewell
    see you(?: (?:later|soon|tomorrow))?|take care|cheers
    hallo|guten (?:morgen|tag|abend)|gute nacht|servus|tschüss|auf wiedersehen|willkommen
    bonjour|bonsoir|salut|au revoir|bienvenue|hola|buenos días|buenas (?:tardes|noches)|adiós|hasta luego
    bienvenid[oa]|ciao|buongiorno|olá|bom dia
    thanks|thank you|many thanks|you are welcome|you're welcome|no problem|don't mention it|sorry
    i am sorry|i'm sorry|my apologies|excuse me|congratulations|congrats|happy birthday
    danke(?: schön| sehr)?|vielen dank|bitte(?: schön| sehr)?|gern geschehen|entschuldigung
    merci(?: beaucoup)?|de rien|je vous en prie|désolée?|gracias|muchas gracias|de nada|lo siento|grazie|obrigad[oa]
    you too|me too|me neither|same here|same to you|likewise
    sure|sure thing|of course|certainly|absolutely|definitely|okay|ok|alright|all right|got it|understood|i see
    yes|no|yeah|yep|nope|great|awesome|cool|nice|wow|oh|ah|well|perfect|sounds good|good question|great question
    natürlich|klar|gerne?|genau|bien sûr|d'accord|oui|non|claro|por supuesto|sí|vale
"""
"""openings of a message that end there, or continue in one of the ways of `_GOES_ON`"""
_GOES_ON = """
    \\s*(?:[,;.!?:…)—]|\\s-|$)
    \\s+(?:everyone|everybody|all|there|friends?|again|so much|very much|a lot)\\b
    \\s+for (?:the|your|you|that|this|sharing|asking|letting)\\b
    \\s+(?:how|what|i|my|it's|it is|we|you)\\b
"""
_PHRASES = """
    (?:it(?:'s| is| was) )?(?:so |very )?(?:nice|good|great|pleased|lovely) to (?:meet|see|hear|talk|chat)\\b
    (?:it(?:'s| is| was) )?(?:so |very )?(?:nice|good|great|lovely) (?:meeting|seeing|talking|chatting)\\b
    how (?:are|is|have) (?:you|it|things)\\b
    (?:how|what) can i (?:help|do for|assist)\\b
    i(?:'m| am) (?:doing |very |so |really )?(?:well|fine|good|great|okay|happy|glad|sorry|excited)(?:[.!,]|$)
    i(?:'m| am) (?:very |so |really |just )?(?:happy|glad|here|sorry|ready) to (?:help|assist|hear|see|meet|chat)\\b
    i(?:'m| am) (?:very |so |really |just )?(?:happy|glad|sorry) for you\\b
    i(?:'d| would|'ll| will| can| could) (?:be )?(?:(?:happy|glad|love|like|pleased|delighted) to )?(?:help|assist)\\b
    we(?:'d| would|'ll| will| can| could) (?:be )?(?:(?:happy|glad|pleased|delighted) to )?(?:help|assist) you\\b
    (?:i|we)(?:'d| would) be (?:happy|glad|delighted) to\\b
    i hope (?:this|that|it|you)\\b
    (?:please )?(?:let me know|feel free to)\\b
    please (?:tell me|don't hesitate|do not hesitate)\\b
    (?:that|it|this) sounds?\\b
    (?:that|it|this)(?:'s| is| was) (?:so |very |really )?(?:great|awesome|cool|wonderful|amazing|nice)(?:[.!,]|$)
    (?:that|it|this)(?:'s| is| was) (?:so |very |really )?(?:great|good|nice|wonderful|lovely) (?:to hear|of you)\\b
    have a (?:nice|good|great|lovely|wonderful) (?:day|time|evening|weekend|trip|one)\\b
    as an? (?:ai|artificial intelligence|language model|large language model)\\b
    i(?:'m| am) (?:just )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\\b
    i(?:'m| am) (?:just )?an? (?:ai |virtual |digital )?assistant\\b
    wie geht(?:'s| es)\\b
    comment (?:ça|ca) va\\b
    ¿?cómo estás?\\b
"""
_PARTY = (
    r"(?:(?:the |an? )?(?:user|assistant|ai(?: (?:assistant|companion))?|speaker|person|chatbot|model)"
    r"(?: (?:\d|one|two|a|b))?|(?:both|the two) (?:users|speakers|participants|people)|the (?:speakers|participants))"
)
_TALKS = """
    greet(?:s|ed|ing)?|thank(?:s|ed|ing)?|apologi[sz](?:es?|ed|ing)
    repl(?:y|ies|ied|ying)|respond(?:s|ed|ing)?|answer(?:s|ed|ing)?
    introduc(?:es?|ed|ing) (?:him|her|them|it)sel(?:f|ves)
    chat(?:s|ted|ting)?|talk(?:s|ed|ing)? (?:to|with|about)|convers(?:es?|ed|ing)|discuss(?:es|ed|ing)?
    (?:say(?:s|ing)?|said) (?:hello|hi|goodbye|thank)
    ask(?:s|ed|ing)? (?:the |an? )?(?:user|assistant|ai|question|model)\\b
    ask(?:s|ed|ing)? (?:about|whether|if|how|what|why|where|when|who)\\b
    ask(?:s|ed|ing)? for (?:help|assistance|advice|information|clarification)\\b
    offer(?:s|ed|ing)? (?:to )?(?:help|assist|assistance)
"""
_KEPT = (
    "ids?|history|logs?|tables?|files?|keys?|tokens?|cookies?|formats?|queues?|brokers?|service|server|store|api|state|"
    "data|timeout|windows?|app|page|tab|(?:is|are|was|were) (?:kept|stored|saved|logged|deleted|encrypted|limited)"
)
"""words after `session` or `message` that make it part of a system rather than the chat"""
_TALK_ITSELF = "conversation|chat|dialogue?|discussion|session|exchange|message"
_ABOUT = rf"(?:in )?(?:the|this|that|our) (?:{_TALK_ITSELF})s?\b(?! (?:{_KEPT})\b)"
_HEADING = re.compile(r"#{1,6}\s|how to\b(?!.*\b(?:is|are|was|were)\b)", re.I)
_WORD = re.compile(r"[^\W\d_]{2,}")
_TITLE_WORDS = 4
"""minimum words of a title, all capitalised and without a full stop"""


def _either(lines: str) -> str:
    return "|".join(line.strip() for line in lines.strip().splitlines())


_NO_STATEMENT = re.compile(rf"(?:{_either(_TURNS)})(?:{_either(_GOES_ON)})|{_either(_PHRASES)}", re.I)
_TALK = re.compile(
    rf"{_PARTY}(?: and {_PARTY})? (?:(?:has|have|had|is|are|was|were|then|also|just|simply) ){{0,2}}"
    rf"(?:{_either(_TALKS)})\b|{_ABOUT}",
    re.I,
)
_QUESTION = ("?", "？", "؟")


def small_talk(statement: str) -> str | None:
    """Return the reason why a statement is not knowledge; None if no rule matches.

    Headings are not knowledge either: they announce a subject and state nothing about it.

    The rules know English phrases, and the usual greetings and thanks of some other languages, at the beginning of the
    statement. The subject decides nothing.

    Args:
        statement: one line, of limited length.
    """
    plain = unicodedata.normalize("NFKC", statement).replace("’", "'").strip(" \"'“”„«»*_-")
    if plain.endswith(_QUESTION):
        return "is a question"
    if _HEADING.match(plain) or _is_title(plain):
        return "is a heading"
    if _NO_STATEMENT.match(plain):
        return "is a greeting, thanks, an offer of help or a turn of talk"
    if _TALK.match(plain):
        return "is about the conversation itself"
    return None


def _is_title(plain: str) -> bool:
    words = _WORD.findall(plain)
    return len(words) >= _TITLE_WORDS and plain[-1] not in ".!。" and all(word[0].isupper() for word in words)
