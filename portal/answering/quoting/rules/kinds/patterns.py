"""Parts of patterns of questions and of answers. Texts are folded: lower case, simplified."""

from __future__ import annotations

import re


def any_of(*patterns: str) -> re.Pattern[str]:
    # With ASCII a Latin word ends where Chinese begins: 5kg以内.
    return re.compile("|".join(patterns), re.ASCII)


# "How do I reach IT?" asks for a number, a desk or a channel, but not "how do I reach the office?".
REACHES = (
    r"(?:怎么样?|怎样|如何|咋)(?:才?能)?联系"
    r"|\bhow (?:do|can|should|could) (?:i|we|you|they|one|customers|guests|clients|members)"
    r" (?:contact|get (?:hold of|in touch with|through to)"
    r"|reach(?! (?:(?:the|your|our) )?(?:[\w-]+ )?(?:office|building|site|station|hotel|lab|venue|campus|plant|airport|floor|roof)\b))"
)
CODE = r"[a-z]+[-_]?\d[a-z\d_-]*"  # P12, yx-220
NUMBER_WORD = (
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|ninety|hundred|thousand|half|none|unlimited)\b"
)
HAN_NUMERAL = r"[零〇一二两三四五六七八九十百千万半]"
# Bounded, because a row of thousands of digits would take time quadratic in its length.
FIGURE, HAN_NUMERALS = r"\d[\d,.]{0,20}", rf"{HAN_NUMERAL}{{1,12}}"
NUMERAL = rf"(?:{FIGURE}|{HAN_NUMERALS}|{NUMBER_WORD})"
TIME_UNIT = (
    r"(?:毫?秒|分钟|小时|钟头|天|晚(?![上班餐饭宴会场点间自])|(?:自然|工作)?日|周|星期|礼拜|个月|月|季度|年"
    r"|(?:working |business |calendar )?(?:second|minute|hour|day|night|week|month|quarter|year)s?\b"
    r"|(?:h|hrs?|mins?|m?s|(?:milli)?secs?|milliseconds?|wks?|mths?|yrs?)\b)"
)
ORDINAL = r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)\b"
MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]{0,6}\b"
CURRENCY_CODE = (
    r"(?:eur|usd|cny|rmb|gbp|chf|jpy|cad|aud|nzd|hkd|sgd|twd|krw|inr|thb|sek|nok|dkk|pln|czk)"
)
CURRENCY = (
    r"(?:[万亿]?[美欧加澳港日韩新纽]?元|块钱?|[英埃]?镑|港币|[新台]?台币|人民币|法郎|卢[布比]|便士|克朗|泰铢|林吉特|比索|里拉|兹罗提"
    rf"|(?:{CURRENCY_CODE}|dollars?|euros?|yuan|pounds?|cents?|yen|won|francs?|rupees?|rou?bles?|kron[aeo]r?|zloty|baht|kr|pesos?|lira|ringgit)\b)"
)
MEASURE_UNIT = (
    r"(?:平方(?:米|公里|千米)|平米|公顷|亩|立方米|海里|公里|千米|厘米|毫米|微米|纳米|米|公斤|千克|毫克|微克|吨|克|毫升|微升|升|[千兆毫]?瓦|英?寸|牛·?米|安|伏|分贝|层|度|级|°"
    r"|(?:km|cm|mm|[μn]m|kg|[mμn]g|[mμ]l|gb|mb|tb|kb|mbps|gbps|[km]?wh?|n ?m|rpm|[km]?pa|bar|psi|[gkm]?hz|db|m?ah?|k?v|characters?|(?:kilo|centi|milli)?met(?:er|re)s?|layers?|miles?"
    r"|(?:kilo|mega|giga|tera)?bytes?|feet|foot|inch\w*|square|grams?|tons?|lit(?:er|re)s?|degrees?|watts?|volts?|pixels?|m[23]?|m?s|bits?)\b"
    r"|个?字符?|位|岁)"
)
# The counters of Chinese: 两只, 三份.
COUNTERS = "个位名人份条种层台页张家款项件辆间部套支道步笔本只头瓶盒箱袋把双对座栋艘架处颗棵根片枚粒罐桶筐户所封篇册题批株盘碗杯"
MONEY_NOUN = (
    r"(?:price|cost|money|fee|budget|salary|wage|charge|fare|fine|deposit|allowance|rent)s?"
)
HAN_MONEY_NOUN = r"(?:价格|费用|金额|工资|薪水|预算|租金|押金|罚款|奖金|补贴|单价|年费|月费|标准)"
OFFICE = (
    r"(?:总?经理|总监|主任|董事长|总裁|[院校部处科组店队会]长|老板|创始人|作者|导师"
    r"|(?:manager|director|president|principal|dean|head|chief|ceo|cto|cfo|coo|founder|author)s?)"
)
