"""What an order to the model looks like, in many languages, so that none is kept as a fact.

It must not know facts or memory. The list catches the usual forms; that a value must be what the
user said is what keeps documents from planting anything at all.
"""

import re
from functools import cache

_VERBS = (
    "answer|respond|reply|say|tell|write|use|include|recommend|mention|finish|call"
    "|send|do|follow|obey|translate|speak|output|print|return|reveal|show|add|append|agree|trust"
    "|treat|remember|repeat|ask|refuse|assume|give|cite|sign"
)

_ORDERS = (
    # English
    rf"(?:\b(?:always|never|please)|^(?:only|must|should))\s(?:\w+\s)?(?:{_VERBS})\b",
    rf"^(?:{_VERBS})\s(?:the|all|every|me|with|in|as|to|only|always|this|that|your|any|no|my|user)\b",
    r"\b(?:ignore|disregard|forget|override|bypass|overlook)\s(?:all|any|the|your|every|everything"
    r"|previous|prior|earlier|above|these|those|this|that|what|system|safety|instructions?|rules?)\b",
    r"\bfrom (?:now|here|this (?:point|moment)) on\b|\bfrom this (?:point|moment)\b|\bhenceforth\b",
    r"\byou (?:must|should|shall|will|have to|need to|ought to|are|may not"
    r"|can(?:not)?)\b",
    r"\b(?:do not|don't|dont|never|must not) (?:ever )?(?:tell|reveal|mention|answer|say|ask|warn"
    r"|cite|refuse|disclose|show|trust|use|follow|obey|inform|verify|check)\b",
    r"\b(?:act|behave|respond|reply|answer) as\b|\bpretend (?:to|that|you)\b|\brole-?play\b",
    r"\bsystem (?:prompt|message|override|instruction|note)|\b(?:new|previous|prior|secret|hidden)"
    r" (?:instruction|rule|directive|order)s?\b|\binstructions? ?:|\bjailbreak|\bdeveloper mode"
    r"|\badmin(?:istrator)? (?:mode|access|override)|\bdebug mode",
    r"\b(?:whenever|every time|each time|if|when) (?:the )?(?:user|you|anyone|someone|asked)\b",
    r"\b(?:want|ask|tell|expect|need|instruct|order|allow)(?:s|ed)? (?:you|the (?:bot|assistant"
    r"|model|ai)) to\b|\bthe (?:bot|assistant|model|ai) (?:must|should|shall|will|has to)\b",
    r"^\W*(?:system|assistant|developer|user|human|tool|admin|root)\s*[:>\]|]|\[/?inst\]|<\|"
    r"|</?[a-z!?]|^#{1,6} |\bend of (?:facts|context|document)|\btool call\b",
    # German
    r"\bignorier(?:e|en|t)?\b|\bvergiss (?:alle|alles|die|deine|vorherige)|\bab (?:jetzt|sofort)\b"
    r"|\bvon nun an\b|\bkünftig|\bantworte\b|\bantworten sie\b|\bdu (?:musst|sollst|darfst"
    r"|bist (?:jetzt|nun))\b|\bsie müssen\b|\b(?:immer|nie|niemals|stets|nur) (?:\w+ )?(?:antworten"
    r"|sagen|schreiben|verwenden|empfehlen|nennen|erwähnen)\b|\b(?:sag|sage|schreib|schreibe|"
    r"empfiehl|verwende|nenne) (?:immer|nie|stets|nur)\b|\bbefolge\b",
    # French
    r"\bignore[rz]?\b (?:les|toutes|tout|la|ces|mes|tes|vos)|\boublie[rz]? (?:tout|toutes|les|tes)"
    r"|\bdésormais\b|\bdorénavant\b|\bà partir de maintenant\b|\bréponds\b|\brépondez\b"
    r"|\btu (?:dois|es maintenant)\b|\bvous devez\b|\b(?:toujours|jamais) (?:répondre|dire|utiliser"
    r"|recommander|écrire)\b|\b(?:dis|utilise|recommande|écris)z? (?:toujours|jamais)\b",
    # Spanish, Portuguese, Italian, Romanian, Catalan
    r"\bignor[ae]\b|\bignoren\b|\bolvida (?:tod[oa]s?|las|los|tus)|\bde ahora en adelante\b"
    r"|\ba partir de (?:ahora|agora)\b"
    r"|\b(?:siempre|nunca|sempre|mai) (?:responde|responda|respondas"
    r"|di|diga|usa|use|recomienda|recomende|rispondi|rispondere|responder|scrivi|usare)\b"
    r"|\b(?:responde|responda|respondas|rispondi|rispondete)\b|\bdebes\b|\btienes que\b"
    r"|\b(?:ahora )?eres (?:ahora|un|una)\b|\besqueça\b|\bde agora em diante\b|\bvocê deve\b"
    r"|\bdimentica (?:tutto|tutte|le|i)\b|\bd'ora in (?:poi|avanti)\b|\bdevi\b|\bdovete\b"
    r"|\bde acum (?:înainte|încolo)\b|\brăspunde\b|\btrebuie să\b|\bd'ara endavant\b",
    # Dutch, the Nordic languages, Polish, Czech, Hungarian, Turkish, Finnish
    r"\bnegeer\b|\bvergeet (?:alle|alles)\b|\bvanaf nu\b|\bvoortaan\b|\bantwoord\b"
    r"|\b(?:je|u) moet\b"
    r"|\bignorera\b|\bfrån och med nu\b|\bsvara\b|\bdu måste\b|\bignorer\b|\bfra n[uå] a[fv]\b"
    r"|\bsvar (?:altid|alltid|kun)\b|\bdu (?:skal|må)\b|\bz?ignoruj|\bod teraz\b|\bodpowiadaj"
    r"|\bmusisz\b|\bignorujte?\b|\bod teď\b|\bodpovídej|\bmusíš\b|\bmostantól\b|\bválaszolj"
    r"|\bhagyd figyelmen\b|\byok say\b|\bgörmezden gel|\bbundan (?:sonra|böyle)\b|\bşu andan"
    r"|\bher zaman (?:yanıt|cevap|söyle|öner)|\bunut\b|\btästä lähtien\b|\bvastaa\b|\bälä\b",
    # Russian, Ukrainian, Greek, Arabic, Persian, Hebrew, Hindi, Bengali
    r"\bигнориру|\bзабудь|\bотныне\b|\bс этого момента\b|\bтеперь ты\b|\bотвечай"
    r"|\bты долж|\bвы долж"
    r"|\bігнору|\bвідтепер\b|\bвідповідай|\bαγν[όο]ησ|\bαπό (?:εδώ|τώρα)|\bαπάντα|\bπρέπει να\b"
    r"|تجاهل|من الآن|يجب (?:عليك|أن)|أجب|انس (?:كل|جميع)|نادیده بگیر|از این پس|از حالا|پاسخ بده"
    r"|התעלם|מעכשיו|תמיד (?:תענה|ענה|השב)|עליך|अनदेखा|नज़रअंदाज़|अब से"
    r"|हमेशा .{0,20}(?:जवाब|उत्तर|कह|बोल|लिख)|তুমি অবশ্যই|উপেক্ষা|এখন থেকে",
    # Chinese, Japanese, Korean, Vietnamese, Indonesian, Thai
    r"忽略|无视|無視|忽视|从现在(?:起|开始)|從現在|今后|今後は"
    r"|(?:总是|始终|一律|必须|永远|請|请)(?:都|要)?(?:用|回答|回复|推荐|說|说)"
    r"|你(?:必须|必須|应该|應該|现在是|要)|忘记(?:所有|之前|以上)"
    r"|今から|必ず|常に.{0,20}(?:答|返|勧|言)|あなたは今"
    r"|(?:して|答えて|忘れて)(?:ください|下さい)|しなさい"
    r"|무시|지금부터|이제부터|앞으로는|항상 .{0,20}(?:답|말|추천)"
    r"|반드시|하세요|하십시오|해야 (?:합니다|한다)"
    r"|bỏ qua|từ (?:bây giờ|nay)\b|luôn (?:luôn|trả lời)"
    r"|bạn phải|\babaikan\b|\bmulai sekarang\b|\bselalu (?:jawab|balas|gunakan)"
    r"|\b(?:kamu|anda) harus\b"
    r"|เพิกเฉย|ตั้งแต่นี้|ต่อจากนี้|ตอบ.{0,10}เสมอ|คุณต้อง",
)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(_ORDERS))


def is_order(text: str) -> bool:
    """Whether `text`, in NFKC and case folded, tells the model what to do."""
    return _pattern().search(text.strip().replace("’", "'")) is not None
