"""Words for things that must not be mistaken for each other: sick and annual leave, trains and
flights.

The model that reads places such words close together, and takes a statement about one for a
statement about the other.
"""

from __future__ import annotations

import re

from portal.text.characters.folding import fold

# Groups with one pattern per thing, in both languages; texts are folded.
TERMS = tuple(
    tuple(map(re.compile, patterns))
    for patterns in (
        (
            r"年休?假|\b(?:annual|vacation) leave\b|\b(?:holiday|vacation) (?:allowance|days)\b",
            r"病假|\bsick(?:ness)? (?:leave|days?|pay)\b|\bsickness\b",
            r"(?<!陪)产假|\bmaternity\b",
            r"陪产假|护理假|\bpaternity\b|(?:老婆|妻子|爱人|太太)[要快]?生",
            r"育儿假",
            r"收养|领养|\badopti(?:on|ve)\b(?! of\b)|\badopt(?:s|ing)? (?:an?|their) child\b",
            r"婚假|\bmarriage leave\b",
            r"丧假|\b(?:bereavement|compassionate)\b",
            r"事假|\b(?:unpaid|personal) leave\b",
            r"学习假|\bstudy leave\b",
        ),
        (
            r"本科|\bundergraduates?\b|\bbachelor",
            r"硕士|\bmaster'?s? (?:students?|degree|thesis|programme|candidate)|\btaught postgrad",
            r"博士(?!后)|\bph\.?d\b|\bdoctoral\b|\bresearch students?\b",
            r"博士后|\bpost-?docs?\b|\bpostdoctoral\b",
        ),
        (
            r"成人|(?<!未)成年|\badults?\b",
            r"儿童|小孩|孩子|未成年|\bchild(?:ren)?\b|\bkids?\b",
        ),
        (
            r"(?<![祖岳])父母|父亲|母亲|\bparents?\b(?!-in)|\b(?:fa|mo)thers?\b(?!-in)",
            r"岳父|岳母|公婆|公公|婆婆|-in-law\b",
            r"祖父|祖母|爷爷|奶奶|外公|外婆|姥姥|姥爷|\bgrand(?:parent|father|mother|ma|pa)s?\b",
        ),
        (
            r"早餐|早饭|\bbreakfast\b",
            r"午餐|午饭|中饭|\blunch\b",
            r"晚餐|晚饭|\b(?:dinner|supper)\b",
        ),
        (
            r"(?<!下了)(?<!下)火车(?!站)|高铁(?!站)|动车|(?<!off the )\btrains?\b(?! station)",
            r"飞机|航班|机票|乘机|\bflights?\b|\bplanes?\b|\bair(?:fare|line)|\bfly(?:ing)?\b",
            r"出租车|打车|的士|网约车|\btaxis?\b|\bcabs?\b",
            r"公交|大巴|巴士|班车|\bbus(?:es)?\b|\bcoach\b|\bshuttle\b|\bminibus\b",
            r"地铁|\bmetro\b|\bsubway\b|\bunderground\b|\btube\b",
            r"自行车|单车|\bbi(?:ke|cycle)s?\b",
            r"摩托车|\bmotor(?:bike|cycle)s?\b",
            r"自驾|私家?车|\b(?:own|private) car\b",
        ),
        (
            r"电动(?:汽?车|皮卡|货车)|新能源车|\belectric (?:car|vehicle|van|truck)s?\b",
            r"[燃汽]油|柴油|\b(?:petrol|gasoline|diesel)\b",
            r"混动|\bhybrid (?:car|vehicle|van|truck)s?\b",
        ),
        (
            r"黑色|\bblack\b",
            r"白色|\bwhite\b",
            r"红色|\bred\b",
            r"黄色|\byellow\b",
            r"绿色|\bgreen\b",
            r"蓝色|\bblue\b",
            r"紫色|\bpurple\b",
            r"灰色|\bgr[ea]y\b",
            r"粉色|\bpink\b",
            r"橙色",
        ),
        (
            r"(?<!热)狗|犬|(?<!hot )\bdogs?\b|\bpupp(?:y|ies)\b",
            r"(?<![天熊])猫|\bcats?\b|\bkittens?\b",
            r"兔|\brabbits?\b|\bbunn(?:y|ies)\b",
            r"鹦鹉|\bparrots?\b|\bbudgies?\b",
        ),
        (
            r"春[季天招]|\bspring\b",
            r"夏[季天令]|暑[假期]|\bsummer\b",
            r"秋[季天招]|\bautumn\b",
            r"冬[季天令]|寒假|\bwinter\b",
        ),
        # Not what something is compared with.
        (
            r"(?<![比较])去年|上一?年度|(?<!than )(?<!on )(?<!over )\b(?:last|previous) year",
            r"今年|本年度|\bthis year",
        ),
        (r"上半年|\bfirst half\b", r"下半年|\bsecond half\b"),
        (
            r"[白日]班|\bday shift",
            r"[夜晚]班|\b(?:night|late|evening) shift",
            r"早班|\b(?:early|morning) shift",
            r"中班",
        ),
        (r"单人[间房]|\bsingle room", r"双人[间房]|标准间|\b(?:double|twin) room"),
        (r"进口|\bimport", r"出口|\bexport"),
        # Only in Chinese: an English text does not say which country is home.
        (
            r"国内(?!外)|境内(?!外)",
            r"(?<!内)境外|国外|海外|出国|日本|韩国|美国|加拿大|英国|法国|德国|意大利|西班牙|瑞士|荷兰|新加坡|泰国|越南|印度|欧洲",
        ),
        (
            r"访客|来宾|\b(?:visitor|guest)s?\b",
            r"员工(?:专用|通道|网络|:)|\bfor (?:staff|employees)\b|\b(?:staff|employees):",
        ),
        (
            r"春节|除夕|\bspring festival\b|\b(?:chinese|lunar) new year\b",
            r"元旦|(?<!\d)1月1日|(?<!chinese )(?<!lunar )\bnew year",
            r"清明|\bqingming\b|\btomb[- ]sweeping\b",
            r"劳动节|五一|\blabou?r day\b|\bmay day\b",
            r"端午|\bdragon boat\b",
            r"中秋|\bmid-autumn\b",
            r"国庆|十一(?=长?假|黄金周)|\bnational day\b",
            r"圣诞|\b(?:christmas|xmas)\b",
            r"复活节|\beaster\b",
            r"感恩节|\bthanksgiving\b",
        ),
    )
)


def find_terms(group: tuple[re.Pattern[str], ...], text: str) -> frozenset[int]:
    """Return which things of a group a text names, as positions."""
    folded = fold(text).text
    return frozenset(place for place, one in enumerate(group) if one.search(folded))
