"""Chinese names that the segmenter does not know: 顾明远."""

from __future__ import annotations

import re

import rjieba

from portal.text.characters.scripts import HAN

_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟"
    "汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文庞樊兰殷施陶洪翟安颜倪严牛"
    "温芦季俞章鲁葛伍韦申尤毕聂丛焦向柳邢路岳齐梅莫庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪靳盛童欧甄项曲成游阳裴席卫查"
    "屈鲍覃霍翁隋植甘景单包司柏宁柯阮桂闵解强柴华车冉房边辜吉饶刁瞿戚丘池滕晋苑邬臧畅宫苟全褚廉简娄盖符奚木穆党燕郎邸冀"
    "姬屠连郜晏栾郁商蒙计喻揭窦迟宇敖糜鄢冷卓花仇艾蓝都巩井练仲乐虞卞封竺冼束"
)
_LENGTH = 3
# Alone in a cell, or between commas.
_ALONE = re.compile(rf"(?:\A|[;|、,。\s(:])([{HAN}]{{{_LENGTH}}})(?=[;|、,。\s)(]|\Z)")


def find_han_names(folded: str) -> list[str]:
    """Return the possible names in a folded text."""
    return [one for one in _ALONE.findall(folded) if is_han_name(one)]


def is_han_name(text: str) -> bool:
    """Return whether three characters may be a name: they begin with a surname, are not a word, and
    do not begin with a noun, as 高压室 does."""
    if len(text) != _LENGTH or text[0] not in _SURNAMES or rjieba.has_word(text):
        return False
    word, tag = rjieba.tag(text)[0]
    return len(word) == 1 or tag != "n"
