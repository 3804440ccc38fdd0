from arroyo_core.pipeline.redaction import HIDDEN, Redaction


def redacted(text, *, secret=None, setting=None):
    redaction = Redaction()
    if secret is not None:
        redaction.hide(secret, HIDDEN)
    if setting is not None:
        redaction.hide_setting(setting, HIDDEN)
    return redaction.redact(text)


def test_a_secret_is_hidden_whole_in_parts_and_cut_short():
    assert redacted("hunter2 rosebud / rosebud / rose / hun", secret="hunter2 rosebud") == "*** / *** / *** / hun"


def test_a_secret_is_hidden_however_it_is_quoted():
    assert redacted("at %2Fp%26 and /p&", secret="/p&") == "at *** and ***"


def test_of_settings_words_that_all_texts_have_stay():
    text = "true: None zstd 9092 SASL_SSL us-west"
    assert [redacted(text, setting=setting) for setting in text.replace(":", "").split()] == [text] * 6
    assert redacted("http at http://host:9000/x", setting="http://host:9000") == "http at ***/x"


def test_of_a_long_setting_a_part_is_hidden_too():
    assert redacted("no MIIEvQIBADANBgkqhkiG", setting="-----KEY-----\nMIIEvQIBADANBgkqhkiG\n") == "no ***"
    assert redacted("no padding", setting="-----KEY-----\nMIIEvQIBADANBgkqhkiG\n") == "no padding"


def test_nothing_is_hidden_where_there_is_no_secret():
    assert redacted("a text") == "a text"
