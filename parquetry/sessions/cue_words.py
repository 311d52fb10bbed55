"""Words with an exact meaning wherever they stand: negation, obligation, bounds, units, the calendar."""

from __future__ import annotations

_NEGATIONS = {
    "english": """
        not no never none nobody nothing nowhere neither nor without hardly rarely seldom
        avoid avoids avoided avoiding forbid forbids forbidden prohibit prohibits prohibited dislike dislikes
    """,
    "german": """
        nicht nichts nie niemals niemand ohne weder kein keine keinem keinen keiner keines verboten vermeide vermeiden
    """,
    "french": "pas jamais sans aucun aucune rien personne non ni éviter évitez évite interdit interdite",
    "spanish": "no nunca jamás sin ningún ninguna ninguno nada nadie tampoco ni evitar evite evita prohibido prohibida",
}
NEGATIONS = {language: frozenset(words.split()) for language, words in _NEGATIONS.items()}
NEGATING_CHARACTERS = frozenset("不没沒未勿無无")
"""negating characters of Chinese and Japanese, which do not separate words"""
_MORE = "more less fewer later earlier longer shorter higher lower larger smaller bigger greater older younger"
COMPARISONS = frozenset(_MORE.split())
"""words followed by `than` and a number: `no more than 5` negates nothing"""
_CLAUSE_ENDS = "but instead however although whereas while sondern mais sino"
CLAUSE_ENDS = frozenset(_CLAUSE_ENDS.split())

BOUNDS: dict[tuple[str, ...], str] = {
    ("at", "least"): ">=",
    ("no", "less", "than"): ">=",
    ("no", "fewer", "than"): ">=",
    ("not", "less", "than"): ">=",
    ("minimum",): ">=",
    ("minimum", "of"): ">=",
    ("min",): ">=",
    ("at", "most"): "<=",
    ("up", "to"): "<=",
    ("no", "more", "than"): "<=",
    ("no", "longer", "than"): "<=",
    ("no", "later", "than"): "<=",
    ("not", "more", "than"): "<=",
    ("maximum",): "<=",
    ("maximum", "of"): "<=",
    ("max",): "<=",
    ("more", "than"): ">",
    ("over",): ">",
    ("above",): ">",
    ("exceeds",): ">",
    ("exceeding",): ">",
    ("less", "than"): "<",
    ("fewer", "than"): "<",
    ("under",): "<",
    ("below",): "<",
    ("exactly",): "=",
    (">",): ">",
    (">=",): ">=",
    ("≥",): ">=",
    ("<",): "<",
    ("<=",): "<=",
    ("≤",): "<=",
}
"""words and signs in front of a number -> the bound that they express"""
LONGEST_BOUND = max(map(len, BOUNDS))

_MODALITIES = {
    "obligation": "must shall mandatory required requires always muss müssen doit doivent debe deben siempre immer",
    "possibility": "may might could optional optionally sometimes occasionally perhaps possibly maybe",
    "restriction": "only except unless exclusively solely nur außer seulement sauf sólo solo solamente excepto",
}
MODALITIES = {word: kind for kind, words in _MODALITIES.items() for word in words.split()}

_UNITS = """
    ns nanosecond nanoseconds
    µs us microsecond microseconds
    ms msec millisecond milliseconds
    s sec secs second seconds sekunde sekunden seconde secondes segundo segundos
    min mins minute minutes minuten minuto minutos
    h hr hrs hour hours stunde stunden heure heures hora horas
    d day days tag tage tagen jour jours día días
    week weeks wk wks woche wochen semaine semaines semana semanas
    month months monat monate monaten mois mes meses
    year years yr yrs jahr jahre jahren ans année années año años
    b byte bytes
    kb kilobyte kilobytes
    mb megabyte megabytes
    gb gigabyte gigabytes gig gigs
    tb terabyte terabytes
    pb petabyte petabytes
    kib kibibyte kibibytes
    mib mebibyte mebibytes
    gib gibibyte gibibytes
    tib tebibyte tebibytes
    bit bits
    kbps kbit
    mbps mbit
    gbps gbit
    hz hertz
    khz kilohertz
    mhz megahertz
    ghz gigahertz
    mm millimeter millimeters millimetre millimetres
    cm centimeter centimeters centimetre centimetres
    m meter meters metre metres
    km kilometer kilometers kilometre kilometres
    inch inches
    ft foot feet
    mi mile miles
    mg milligram milligrams
    g gram grams gramm
    kg kilo kilos kilogram kilograms kilogramm
    lb lbs pound pounds
    oz ounce ounces
    l liter liters litre litres
    ml milliliter milliliters millilitre millilitres
    % percent pct prozent
    °c c celsius
    °f f fahrenheit
    k kelvin
    $ usd dollar dollars
    € eur euro euros
    £ gbp
    ¥ jpy yen
    chf
    x times mal fois veces
    px pixel pixels
    pt pts
    v volt volts
    w watt watts
    kw kilowatt kilowatts
    kwh
    mah
    rpm
    dpi
    fps
    th st nd rd
"""
UNITS = {spelling: line.split()[0] for line in _UNITS.strip().splitlines() for spelling in line.split()}
"""spelling, case-folded -> the unit used for comparison"""

_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: 10 * value for value, word in enumerate(_TENS.split(), start=2)
}
MULTIPLIERS = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
REPEATED = {"once": "1", "twice": "2", "thrice": "3"}
_AFTER_ONE = "should must can may has could would might cannot another of which that who"
AFTER_ONE = frozenset(_AFTER_ONE.split())
"""words that follow `one` where it is not a number"""
_BEFORE_ONE = "no this that the each every another which any some new old"
BEFORE_ONE = frozenset(_BEFORE_ONE.split())
"""words that precede `one` where it is not a number"""

_MONTHS = """
    january jan januar janvier enero
    february feb februar février febrero
    march mar märz mars marzo
    april apr avril abril
    may mai mayo
    june jun juni juin junio
    july jul juli juillet julio
    august aug août agosto
    september sep sept septembre septiembre
    october oct oktober octobre octubre
    november nov novembre noviembre
    december dec dezember décembre diciembre
"""
MONTHS = {
    spelling: f"{number:02}"
    for number, line in enumerate(_MONTHS.strip().splitlines(), start=1)
    for spelling in line.split()
}
AMBIGUOUS_MONTHS = frozenset(("may", "march", "mar", "sept", "mai"))
_BEFORE_MONTH = "in since until till by every each last next this from of im seit bis en desde hasta"
BEFORE_MONTH = frozenset(_BEFORE_MONTH.split())
"""words that precede a month whose name is also an ordinary word"""
_CALENDAR = """
    monday tuesday wednesday thursday friday saturday sunday weekday weekend mondays tuesdays wednesdays thursdays
    fridays saturdays sundays weekdays weekends
    montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche
    lunes martes miércoles jueves viernes sábado domingo
    hourly daily nightly weekly biweekly fortnightly monthly quarterly yearly annually
    today yesterday tomorrow tonight noon midnight morning mornings afternoon afternoons evening evenings
"""
CALENDAR = frozenset(_CALENDAR.split())

_LIGHT = """
    use uses used using get gets getting go goes going want wants wanted need needs needed prefer prefers preferred
    like likes liked make makes made making do does doing done allow allows allowed permit permitted recommend
    recommended please ever really longer anymore benutze benutzen verwende verwenden utiliser utilisez usar use
"""
LIGHT = frozenset(_LIGHT.split())
"""light verbs, which say little about what is negated"""

_OPENERS = """
    please use using prefer prefers avoid add remove run running write writing read reading make making keep keeping put
    take set setting get getting give go check checking test testing always never ensure start stop try call create
    creating build building install installing deploy deploying update updating delete open close save saving send
    store storing load loading move move rename change changing choose pick consider remember note include exclude
    import export commit push pull merge rebase review fix fixing handle handling catch log logging print return define
    declare implement follow wrap pass see look ask tell explain describe show provide avoid let do don't help start
    begin end finish wait retry split join sort filter group count limit cap validate verify confirm convert
    replace replacing restart upgrade pin lock enable disable configure allow apply treat work working think learn
    learning study buy bring eat drink sleep plan planning schedule book visit watch listen play
    first second third finally usually often sometimes generally typically currently recently today later soon
    currently instead maybe perhaps however moreover additionally furthermore also likes dislikes wants needs enjoys
    loves hates believes works lives thinks people someone something everyone everybody everything anyone
    good better best bad large small big many several various different new old long short high low full empty
"""
OPENERS = frozenset(_OPENERS.split())
"""words capitalised only because they often begin a sentence; so are the stop words"""
_ENDINGS = "ing ings tion tions ment ments ness ity ities ous ive ful able ible ical ly ism ized ised ed ers ies less"
ORDINARY_ENDINGS = tuple(_ENDINGS.split())
"""endings of words that are hardly ever names"""
