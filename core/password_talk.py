"""The words that people say about passwords, by which a sentence about one is told from one.

It must not know patterns; it is a list to be extended when a harmless sentence is blotted out.
"""

import re

TALK = frozenset(
    word
    for words in (
        # English: states, rules, storage, questions, types in code
        "required wrong incorrect correct invalid valid expired not too stored hashed encrypted "
        "sent the a an in on at weak strong missing empty needed optional being never always "
        "still now only also set reset changed changing working shared kept saved hidden visible "
        "mandatory used my your his her their our its safe secure secret generated protected lost "
        "forgotten what where when how why who here there longer shorter between shown known "
        "different unknown easy hard difficult good bad fine okay important limited allowed out "
        "for from with without this that these same very really quite one two three four five "
        "six eight ten twelve something just already yours mine gone old new must should can "
        "cannot will may long short str string text bytes any none null true false hash field "
        "input secretstr undefined leaked exposed needs default and but because then than all "
        "less more about unique public private personal confidential sensitive yet again failing "
        "choose retype enter type enable disable see ask contact get find per either "
        "both part like case read write only plain time hard great helpful handy recommended "
        "strength expiry history manager policy reset link page form box prompt "
        "length up to be it as if raise return pass print yield throw",
        # German
        "falsch richtig nicht abgelaufen sicher unsicher erforderlich leer gespeichert geändert "
        "vergessen weg das ein eine der die den auf bei schon noch sehr gut schlecht immer nie "
        "jetzt geheim pflicht korrekt ungültig gültig lang kurz mindestens wichtig nur auch mein "
        "dein hier dort verschlüsselt zurückgesetzt gesperrt bekannt unbekannt notwendig nötig",
        # French
        "faux incorrect expiré obligatoire requis trop vide stocké enregistré oublié changé perdu "
        "invalide valide sécurisé chiffré mon ton son pour dans très bien une erroné",
        # Spanish, Portuguese, Italian
        "incorrecta incorrecto correcta correcto inválida obligatoria obligatorio requerida "
        "necesaria demasiado muy vacía segura débil caducada importante una para que como "
        "incorreta correta obrigatória necessária muito fraca expirada vazia errata sbagliata "
        "corretta obbligatoria richiesta troppo molto scaduta sicura debole vuota della non não",
        # Dutch, the Nordic languages, Polish, Czech, Hungarian, Turkish, Vietnamese, Malay
        "fout verkeerd juist onjuist ongeldig verplicht vereist verlopen leeg "
        "veilig niet geen fel felaktigt "
        "ogiltigt krävs forkert ugyldig påkrevd feil väärä vanhentunut błędne nieprawidłowe "
        "wymagane niepoprawne wygasło puste špatné neplatné povinné helytelen yanlış hatalı "
        "gerekli geçersiz doğru zorunlu sai đúng salah wajib benar",
        # Russian, Greek, Arabic, Hebrew, Hindi
        "неверный неправильный верный обязателен нужен слишком пустой истёк истек сброшен "
        "изменён изменен должен λάθος σωστός απαραίτητος خاطئة مطلوبة غير صحيحة שגויה נדרשת "
        "गलत आवश्यक ज़रूरी सही",
    )
    for word in words.split()
)

PLACEHOLDERS = frozenset(
    ("string", "text", "password", "str", "bytes", "null", "none", "true", "false", "required")
)
"""Those that stand in quotation marks where code describes a password and does not give it."""

UNITS = re.compile(
    r"(?:characters?|chars?|digits?|bits?|bytes?|days?|words?|letters?|minutes?|hours?|months?"
    r"|years?|zeichen|stellen|tage|caract|signos|dígitos|cyfr|знак|символ|文字|位|桁|자)",
    re.IGNORECASE,
)

FUNCTION_WORDS = re.compile(
    r"\s+(?:and|but|or|so|if|for|on|in|at|to|the|a|when|now|here|again|as|than|then|this|that"
    r"|today|already)\b",
    re.IGNORECASE,
)
