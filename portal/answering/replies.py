"""Messages that need no documents: greetings, tasks for a language model, arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from portal.answering import arithmetic
from portal.answering.quoting.questions import HAN_ASKS, without_greeting
from portal.text.characters.folding import fold, in_script_of


class Task(StrEnum):
    """What a message wants instead of an answer from the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    COMPLAINT = "complaint"
    ABOUT = "about"
    LIST_DOCUMENTS = "list_documents"
    OUTLINE = "outline"
    COMPARISON = "comparison"
    WRITING = "writing"
    ARITHMETIC = "arithmetic"
    NOW = "now"


@dataclass(frozen=True, slots=True)
class UnderstoodMessage:
    """The interpretation of a message. `subject` is what to summarise, folded, or the result of a
    calculation; with `may_ask` it is a question where there is no such document."""

    task: Task
    subject: str = ""
    may_ask: bool = False


_REPLIES = {
    Task.GREETING: {
        "zh": "你好！我从您的文档里查找并引用原文。请直接提问，例如“年假有几天？”。",
        "en": "Hello! I find and quote passages from your documents. "
        "Ask a question, such as “How many days of leave do I get?”",
    },
    Task.THANKS: {"zh": "不客气。", "en": "You're welcome."},
    Task.FAREWELL: {"zh": "再见！", "en": "Goodbye!"},
    Task.COMPLAINT: {
        "zh": "抱歉没有帮上忙。请换个说法再问一次，最好用文档里的词，也可以在回答下方反馈哪里不对。",
        "en": "I am sorry that this did not help. Ask again in other words, best in those of the "
        "documents, or say below the answer what is wrong with it.",
    },
    Task.ABOUT: {
        "zh": "我是知识门户的问答功能，没有使用语言模型。我在您可以查看的文档中搜索，"
        "逐字引用回答问题的句子、列表和表格行，并注明出处；文档没有写明时，会如实说明。"
        "中文和英文都可以。您也可以问“有哪些文档？”，或者让我“总结”某份文档，我会列出它的提纲。",
        "en": "I answer questions for this portal, without a language model. I search the documents "
        "you can see, quote the sentences, list items and table rows that answer, with their "
        "sources, and say so when the documents do not answer, in Chinese and English. You can "
        "also ask “What documents are there?”, or have me “summarise” a document: I list its outline.",
    },
    Task.NOW: {
        "zh": "我只根据文档回答，不知道现在的时间、日期和天气。",
        "en": "I answer from the documents alone, and do not know the time, the date or the weather.",
    },
    Task.WRITING: {
        "zh": "翻译、改写和写作需要语言模型，而本站目前只引用原文。"
        "管理员可以在“管理”页面接入语言模型。您也可以就文档内容提出具体问题。",
        "en": "Translating, rewriting and drafting need a language model, and this portal only quotes "
        "at the moment. An administrator can connect one under Administration. "
        "You can also ask a specific question about the documents.",
    },
}

_PLEASE = r"(?:请|麻烦)?(?:您|你)?(?:能否|可以|能)?(?:请)?(?:帮我|给我|为我)?(?:把|将)?"
_PLEASE_EN = r"(?:please |can you |could you |would you |will you )*(?:please )?"
# Folded: lower case, simplified. They match only a whole message.
_SAID = (
    (
        Task.COMPLAINT,
        r"(?:you(?:'re| are)|this(?: (?:thing|portal|tool|answer))? is|it(?:'s| is)|that(?:'s| is| was)|your answer is)(?: (?:so|really|just|very|completely|totally|absolutely|an?))*"
        r" (?:useless|stupid|dumb|idiot|terrible|awful|rubbish|garbage|nonsense|wrong|bad|no help|no good|not (?:right|correct|true|helpful|useful|what i asked|an answer))"
        r"|(?:wrong|useless|nonsense)(?: answer)?|rubbish answer|you (?:suck|don't understand(?: me)?|did(?: not|n't) (?:help|answer)(?: me| my question)?)",
        # Alone it is a keyword.
        r"[你您]?(?:回答|答|说|讲|搞|弄)(?:得|的)?(?:不对|错)了?[啊呀吧吗]?",
        r"(?!垃圾)(?:[你您](?:的?回答)?|这个?(?:回答|答案|系统|工具)?|回答|答案)?(?:真的?|太|完全|根本|一点|好|也|都|是|就是)*"
        r"(?:没有?用|不对|错了?|不好用|不行|没有?帮助|笨|蠢|傻|差劲?|垃圾|胡说八?道?|答非所问|没有?回答(?:我的)?问题|听不懂)了?[啊呀吧吗]?",
    ),
    (
        Task.ABOUT,
        r"(?:请问)?[你您](?:到底)?(?:是|用的是?|使用的是?|背后(?:用的?)?是?)"
        r" ?(?:谁|什么|[哪那]个模型|什么(?:语言)?模型|[一个]*(?:机器人?|人工智能|ai|真?人|chatgpt|gpt|deepseek|通义千问|豆包|kimi|大?(?:语言)?模型)(?:还是(?:机器人?|真?人|ai))?) ?"
        r"(?:(?:开发|做|训练)(?:出来)?的)?[吗呀啊呢]?|[你您](?:背后)?(?:用|使用)(?:的是)?(?:什么|哪个)(?:语言)?模型",
        r"[你您](?:叫|的名字(?:是|叫)?)什么(?:名字)?|[你您]是(?:哪家|哪个|什么)(?:公司|团队)?(?:开发|研发|做|训练)(?:出来)?的|谁(?:开发|做|制作|训练)(?:出来)?了?的?[你您]的?|(?:请)?(?:自我介绍|介绍一?下?[你您]自己)(?:一下)?吧?",
        r"这(?:个|是个?)?(?:系统|门户|网站|工具|平台|东西)?(?:是|到底是)?(?:什么|(?:做|干|用来做|用来干)(?:什么|嘛|啥)用?的|有(?:什么|啥)用)(?:系统|门户|网站|工具|平台|东西)?",
        r"[你您](?:会|能|懂|支持|可以)(?:说|讲|用|听懂|看懂)?(?:英文|英语|中文|汉语|普通话|繁体)?(?:中文|英文)?(?:回答|提问|回复)?吗|[你您](?:都)?(?:懂|会说|支持)(?:哪些|什么|几种)语言",
        r"[你您]的(?:答案|回答|内容)(?:都)?是?(?:从哪[里儿]?来的?|来自哪里|(?:可靠|可信|准确?|靠谱|正确|能信)(?:吗|不|的吗))|[你您](?:会不会|会)(?:胡|瞎|乱)?编造?(?:答案|内容|东西)?吗?",
        r"能帮(?:我|我们|忙)(?:做|干|处理|解决)?(?:些|一些|点)?(?:什么|哪些|啥)(?:事情?)?|[你您](?:都)?(?:懂|知道|了解)(?:些|一些|点)?(?:什么|哪些|啥)",
        r"(?:请问)?(?:[你您我]|这个?(?:系统|门户|网站|工具|平台)?)(?:都|还)?(?:能|会|可以)(?:用来|帮我|为我|给我)?(?:做|干|问|回答|解答|帮我|处理|解决)?[你您]?"
        r"(?:些|一些|点)?(?:什么|哪些|啥|嘛)(?:样的)?(?:问题|事情?|忙)?|[你您]有(?:什么|哪些|啥)(?:功能|用处?|本领)",
        r"(?:[你您]|这个?(?:系统|门户|网站|工具|平台)?)?(?:是)?(?:怎么|如何)(?:使?用|工作|运作|回答(?:问题)?)(?:[你您]|这个?(?:系统|门户|网站|工具|平台)?)?的?",
        r"(?:who|what)(?: exactly)? (?:are|r) (?:you|u)(?: exactly)?|(?:who|what company) (?:made|built|created|trained|wrote) you|(?:what|which)(?: ai| language)? model (?:are you|do you|is this)(?: run(?:ning)?| based| built| using| use)*(?: on)?"
        r"|(?:are (?:you|u)|is this|am i talking to|do you use|are you using)(?: an?)?(?: real| live| chat)?[ -]?(?:bot|chatbot|robot|human|person|ai|chatgpt|gpt|machine|llm|language model)(?: or .{1,20})?",
        r"what(?: is|'s) your (?:name|purpose|job)|what(?: is|'s) this(?: (?:portal|site|website|tool|app|service|thing|page|system))?(?: for)?|tell me about yourself|introduce yourself|(?:can you )?(?:please )?help(?: me)?"
        r"|what (?:can|do|could|else can|things can) (?:you|i|we)(?: actually)? (?:do|ask|answer)(?: (?:you|for me|for us|here|about|with this|with you))*|what are you able to do|what can you help (?:me )?with|how can you help(?: (?:me|us))?|tell me what you (?:can )?do|what (?:features|skills|functions) do you have"
        r"|what are your (?:capabilities|features|functions|skills)",
        r"(?:can|do|could) you (?:speak|understand|know|read|answer(?: me)? in|reply in) (?:chinese|english|mandarin)|(?:what|which) languages? (?:do|can) you (?:speak|understand|know|support|read)"
        r"|where do (?:your|the|these) answers come from|where do you (?:get|take|find) (?:your|the) (?:answers|information)(?: from)?|(?:can|should) (?:i|we) trust (?:you|your answers|the answers)"
        r"|(?:do|can|will|would) you (?:ever )?(?:make|invent) (?:things|stuff|answers|anything|something)(?: up)?|are (?:you|your answers|the answers) (?:always )?(?:reliable|accurate|correct|right)",
        r"what (?:kinds?|sorts?|types?) of (?:questions|things) (?:can|should|may) (?:you|i|we) (?:ask|answer|do)(?: you| here)?"
        r"|what should (?:i|we) ask(?: you)?|can (?:i|we) ask(?: you)? (?:anything|any questions?|(?:you )?(?:a|some) questions?)"
        r"|(?:can|do|could) you (?:see|access|search|use|browse|look up|go on(?:to)?|have access to)(?: things| anything)?(?: on)? the (?:internet|web)|do you (?:remember|know) what i (?:said|asked).{0,30}"
        r"|how do you (?:find|get|choose|know|come up with) (?:your|the) (?:answers?|information)|how (?:should|do|can) i (?:ask|phrase|word)(?: you)?(?: (?:my|a|the))?(?: questions?)?(?: (?:to )?you)?",
        r"[你您](?:能|可以|会)(?:不能)?(?:上网|联网|访问(?:互联网|外网|网络))(?:查|搜|找)?(?:东西|资料|信息)?[吗么]?|(?:我)?(?:该|应该|要|可以)?(?:怎么|如何|怎样)(?:向|问|跟|对)[你您](?:提问题?|问问题|提问)?"
        r"|how (?:do|does|can|should) (?:you|this|it|i|we)(?: (?:portal|site|tool|thing|system))? (?:work|function|use (?:this|you|it)(?: (?:portal|site|tool|thing|system))?)|how to use (?:this|it)",
    ),
    (
        Task.NOW,
        r"(?:请问)?(?:现在|今天|明天|这会儿)(?:是|都)?(?:几点钟?|什么时间|什么时候|(?:星期|周|礼拜)几|几月几[号日]|几[号日]|什么日子)了?[呀啊呢]?",
        r"(?:请问)?(?:今天|明天|现在|外面)的?(?:天气|气温)(?:怎么样|如何|好不好|好吗|多少度?)?[呀啊呢]?|(?:今天|明天)会?(?:下雨|下雪)吗",
        r"what(?:'s| is)(?: the)? (?:current )?(?:time|date)(?: is it)?(?: (?:today|now|right now|is it))?|what (?:time|day|date) is (?:it|today)(?: (?:today|now|right now))?|what(?:'s| is) today'?s date"
        r"|(?:what(?:'s| is)|how(?:'s| is)) the weather(?: like)?(?: (?:today|tomorrow|now|outside))?|(?:is it|will it)(?: be)? (?:rain|snow|raining|snowing|sunny)(?: (?:today|tomorrow|now|outside))?",
    ),
    (
        Task.LIST_DOCUMENTS,
        r"(?:请问)?(?:现在|目前)?(?:(?:这|那)(?:里|儿)|里|系统|(?:知识)?库|(?:知识)?门户|平台|网站)?(?:里|里面|里边|里头|中|上|面|边|头)?[你您我]?们?(?:都|一共|总共|现在|目前|已经?|能|可以)*"
        r"(?:有|包含|收录了?|看到|看|查询?|搜索?|知道|上传了|访问|读过?)(?:哪些|什么|多少[个份]?|几[个份])(?:文档|文件|资料)(?:可以|能|可)?(?:查|看|问|搜|用)?(?:询|索)?",
        r"(?:这里|里面|(?:知识)?库里?|(?:知识)?门户里|系统里)(?:面)?(?:都|一共|总共)?(?:有|收录了?)(?:些|哪些)?(?:什么|内容|东西)(?:内容|东西)?|有(?:文档|文件)吗",
        r"(?:请)?(?:帮我|给我|让我)?(?:列出?|列一下|显示|展示|看看?)(?:一下|下)?(?:所有|全部)?的?(?:文档|文件|资料)(?:列表|清单)?|(?:文档|文件)(?:列表|清单)",
        r"(?:这些|那些|所有|全部|我的|这里的?)的?(?:文档|文件|资料)(?:里面?|中)?(?:都|主要|大概|大致)*(?:是?关于|讲|说|写|包含|包括|涉及)了?的?是?(?:些)?(?:什么|哪些)(?:的|内容|方面)?",
        r"(?:[你您]|这里)?(?:手头|手上|手里)(?:上|都|现在|一共)?有(?:哪些|什么|多少[个份]?)(?:文档|文件|资料)",
        r"what (?:are|do) (?:these|those|the|my|our|all)(?: of)?(?: (?:these|the|my|our))? (?:documents|files|docs) (?:all )?(?:about|cover|contain|say)",
        r"(?:what|which|how many)(?: kind of)? (?:documents|files|docs|sources)(?: (?:are|do|can|have)(?: (?:there|you|we|i|been))?(?: got)?"
        r"(?: (?:available|have|know(?: about)?|use|see|read|search|access|uploaded|loaded|here|in (?:here|use|there)|have access to|ask(?: you)? about))?(?: to (?:me|us|you))?(?: here| now)?)?",
        r"what(?:'s| is| do you have| have you got) (?:in (?:here|there|(?:the|your|our|this) (?:portal|library|system|knowledge base))|on file)"
        r"|what do you know(?: about)?|what have you got(?: here)?|what can (?:i|we) search(?: (?:here|in|for))?"
        r"|(?:please )?(?:give|show|send)(?: me| us)? (?:a|the|your) (?:full |complete )?list of (?:all )?(?:(?:the|my|your|our) )?(?:documents|files|docs)"
        r"|(?:what|which|how many)(?: (?:documents|files|docs))? (?:did|have) (?:i|we) (?:upload|add)(?:ed)?(?: (?:so far|already|here|until now))?|(?:the )?names of (?:all )?(?:the |my |our )?(?:documents|files)(?: (?:that )?(?:you|i|we) (?:have(?: access to)?|can (?:see|read|search)|uploaded))?|(?:show|list)(?: me)? (?:everything|all)(?: (?:here|(?:in|that is in) (?:here|there|(?:the|this|your|our|my) (?:knowledge base|portal|library|system|database))))?"
        r"|(?:give|show|send)(?: me| us)? (?:a|the) (?:full |complete )?list of all (?:the |my |our )?(?:documents|files|docs).{0,50}",
        r"[我咱]们?(?:都|已经?|一共|总共|目前|现在)*(?:上传|传)(?:过|了)(?:哪些|什么|多少[个份]?|几[个份])(?:文档|文件|资料|东西)?|(?:看看?|列一?下|列出|显示)[我咱]们?(?:的|(?:都)?(?:上传|传)[了过]?的?)(?:哪些|所有|全部)?(?:文档|文件|资料)"
        r"|把?(?:所有|全部|我的)的?(?:文档|文件|资料)的?(?:名字?|名称|标题|目录)?(?:都)?列(?:出来|一下|个?清单)"
        r"|(?:please )?(?:list|show)(?: me)?(?: all)?(?: of)?(?: (?:the|my|your|our))? (?:documents|files|docs)",
    ),
    (
        Task.OUTLINE,
        rf"{_PLEASE}(?:总结|概括|归纳|概述|概要|摘要)(?:一下|下)?(?:这[篇份个]|本)?(?P<s1>.{{0,60}})",
        r"(?:请|麻烦)?(?:你|您)?(?:帮我)?(?:把|将|对|给|为)(?P<s2>.{1,40}?)(?:做(?:个|一个)?)?(?:总结|概括|概述)(?:一下|下|出来)?",
        r"(?P<q1>.{1,40}?)(?:主要|大概|大致)?(?:讲|说|写|包含|包括)了?(?:些?什么(?:内容)?|哪些内容)|(?P<q2>.{1,40}?)的(?:主要|大致)?内容(?:是什么|有哪些)|(?P<q3>.{1,40}?)的(?:提纲|大纲|目录|摘要|要点)(?:是什么)?",
        rf"{_PLEASE_EN}(?:summari[sz]e|give (?:me )?(?:a |an )?(?:brief |short |quick )?(?:summary|overview|outline) of|outline)"
        r"\b(?P<s4>.{0,80})",
        r"what(?: is|'s| does)? (?P<q4>.{1,60}?) (?:(?:is )?(?:all )?about|cover|say in short)",
        r"(?:(?:give|show|get|tell) me |what(?:'s| is| are) |i(?: would|'d) like |i need )?(?:the |an? )?(?:quick |short |brief |rough )?(?:tl;?dr|gist|summary|overview|outline|recap|(?:main|key) (?:points?|takeaways?|messages?)|highlights|short version) (?:of|from|on|for) (?!contact\b)(?P<q9>.{1,80})",
        r"(?:sum up|boil down|recap) (?P<q10>.{1,80})|sum (?P<q17>.{1,60}) up|(?P<q11>(?!(?:who|what|when|where|which|why|how|is|are|do|does|can)\b).{1,60}?)(?:,| -)? (?:in a nutshell|in brief|tl;?dr|summary)",
        r"(?:说说|讲讲|谈谈|介绍一?下)?(?P<q12>.{1,40}?)的?(?:重点|要点|核心(?:内容|观点)?|大意|主旨|梗概|概要|提要|主要内容)(?:是什么|是啥|有哪些|提炼一?下)?",
        r"(?P<q13>.{1,40}?)(?:大概|主要|大致|到底|都)+(?:说|讲|写)了?(?:些?啥|点?什么)|(?P<q14>(?:(?!怎么|如何|怎样|谁|什么).){2,40}?)[ ,]?(?:简单|简要)?(?:总结|概括)(?:一下|下)?|用.{1,6}[话字点](?:总结|概括|说说|介绍)(?:一下|下)?(?P<q15>.{1,40})",
        r"(?:把|将)(?P<q16>.{1,40}?)(?:的(?:核心|主要)?内容)?(?:浓缩|提炼|精简|归纳)(?:成|为|出来|一下|下).{0,12}",
    ),
    (
        Task.COMPARISON,
        rf"{_PLEASE}(?:比较|对比)(?:一下|下)?(?P<s5>.{{2,120}})",
        r"(?P<q5>.{2,120}?)(?:之间)?(?:有(?:什么|哪些)|的)(?:区别|不同|差别|差异|不一样)(?:的地方)?(?:是什么|有哪些)?",
        r"(?P<q7>.{2,120}?)相比(?:较)?(?:,)?(?:有(?:什么|哪些))?(?:变化|改动)(?:了什么)?",
        rf"{_PLEASE_EN}compare\b(?P<s6>.{{2,120}})",
        r"(?:what (?:is|are) )?(?:the )?differences? between (?P<q6>.{2,120})",
        r"(?:what|how)(?: has| have| was| did)? (?:changed?|differs?) between (?P<q8>.{2,120})",
    ),
    (
        Task.WRITING,
        # 翻译费用标准 is a subject, and 编译 no translation.
        rf"{_PLEASE}(?:翻译|改写|润色|扩写|缩写|仿写|续写)(?:(?:一下|下|成|为|到|这|那|以下|上面|[:,]).{{0,60}})?",
        rf"{_PLEASE}.{{1,60}}(?:翻译|译)(?:成|为|到).{{1,12}}|{_PLEASE}用(?:英文|中文|英语)(?:写|说|表达).{{0,60}}",
        r"(?:请|麻烦|能|可以|帮|给我|为我|把|将|您|你).{0,60}(?:翻译|改写|润色)(?:一下|下)?.{0,12}",
        rf"{_PLEASE}.{{1,60}}[翻译]译?[成为](?:英|中|日|法|德|西班牙|韩)[文语].{{0,60}}",
        # 怎么说 asks for nothing that documents say.
        r"(?P<w1>.{1,60}[英中日法德韩][文语](?:该?怎么|如何)(?:说|讲|写|表达)|.{1,40}[中英]文(?:是什么)?意思(?:是什么)?)|(?P<w4>what does .{1,40} mean in (?:english|chinese|mandarin))|(?P<w2>how (?:do|would|can|should) (?:you|i|we|one) say .{1,80} in \w+)",
        r"(?P<w3>(?:what(?:'s| is)|put|say|write) .{1,80} in(?:to)? (?:english|chinese|mandarin|french|german|spanish|japanese|italian)(?:: ?.{0,200})?)|[\"“'].{1,80}[\"”'] in (?:english|chinese|french|german|spanish|japanese)",
        rf"{_PLEASE}(?:写|起草|草拟|撰写)[一个份篇封].{{0,60}}|(?:讲|说)[一个]+(?:笑话|故事)",
        rf"{_PLEASE_EN}(?:translate|rewrite|paraphrase|proofread|rephrase|shorten)\b.{{0,120}}",
        rf"{_PLEASE_EN}(?:draft|compose|write)(?: me)? (?:an?|the|some) .{{0,120}}",
        rf"{_PLEASE_EN}tell(?: me)? (?:an?|another|some) (?:\w+ )?(?:jokes?|story|stories|poems?|tales?)",
    ),
)  # fmt: skip
# One or several of these, folded, are a whole message.
_GREETINGS = (
    r"[你您]们?好[呀啊吗]?|(?:大家)?(?:早上?|上午|中午|下午|晚上|新年)好[呀啊]?|大家好|嗨|嘿|哈[喽罗啰]|早安?[呀啊]?|晚安|在吗|在不在|有人(?:在)?吗|初次见面|(?:很)?高兴认识[你您]"
    r"|(?:hi(?:ya)?|hello|hey|howdy|good (?:morning|afternoon|evening|day|night))(?: (?:there|everyone|all|bot|portal|team))?|how are (?:you|things)(?: doing)?(?: today)?|how(?: is|'s) it going|what'?s up"
    r"|(?:morning|afternoon|evening)(?: (?:all|everyone|team))?|nice to meet you|(?:is )?any(?:one|body) (?:there|here)"
)
_THANKS = (
    r"(?:真的?|非常|十分|太|万分)?(?:感谢|谢谢|多谢|谢)(?:[你您]们?)?(?:的?(?:帮助|帮忙|解答|回答))?[了啦呀啊]?|辛苦(?:[你您])?[了啦]|帮(?:了我?)?(?:个|了)?(?:大|很大的?)忙了?"
    r"|(?:非常|很|太|真)?有(?:用|帮助)了?|好的?|明白了?|知道了|懂了|了解了?|没有?(?:别的|其他)?(?:的)?(?:问题)?了"
    r"|(?:many |so many )?thanks?(?: you| u)?(?: again)?(?: (?:very|so) much| a lot| a ton)?(?: for [^,?]{1,30})?|thx|cheers(?: mate)?|(?:much |i (?:really )?)?appreciate(?:d)?(?: it)?"
    r"|(?:that|this|it)(?: was| is|'s)? (?:really |very |so )?(?:help(?:ed|s|ful)?|great|perfect|useful)(?: a lot| me)?|that(?:'s| is) (?:all|it)(?: for (?:now|today))?|(?:好的?|嗯+)?收到|太(?:好|棒|赞)了|先?就?这样[吧了]|没有?(?:别的|其他)的?(?:事|问题)?[了啦]?"
    r"|ok(?:ay)?|great|cool|perfect|nice(?! to)|awesome|got it|understood|never ?mind"
)
_FAREWELLS = r"再见[啦了]?|拜拜[啦了]?|回头见|明天见|(?:good)?bye(?:[ -]bye)?(?: for now)?|see you(?: later| soon| tomorrow)?"
_AROUND = r"[\s!?.,~;:。！？，、～；：…]*"
# Atomic groups: a phrase that matched is not tried in another way, which would take exponential time.
_COURTESY = re.compile(f"{_AROUND}(?:(?>{_THANKS}|{_FAREWELLS}|{_GREETINGS}){_AROUND})+")
# "Could you please … for me, thanks?"
_AROUND_ASKED = re.compile(
    r"\A(?:(?:please|pls|could you|can you|would you|will you|i(?:'d| would) like you to|just|quickly|(?:i want|i need) you to)\b,? ?"
    r"|麻烦|请问?|劳驾|[您你](?!们?[的好])|能不能|能否|可不可以|帮我?忙?(?:看|查|算)?(?:一?下)?|我(?:就)?想(?:知道|看看?|问)(?:一下)?|,)+"
    r"|(?:,? ?(?:please|pls|thanks?|thank you|for me|quickly|briefly|in (?:a few|two|three|five|\d+) (?:sentences|words|lines|bullets?|bullet points)"
    r"|谢谢[您你]?|好吗|行吗|可以吗|简单说说|吧|呗))+[\s!?.,。！？]*\Z"
)
_MAX_COURTEOUS = 300  # Characters: longer ones are no such messages, and would take long.
_HAS_THANKS = re.compile(f"{_AROUND}(?:(?>{_GREETINGS}){_AROUND})*(?:{_THANKS}).*", re.DOTALL)
_HAS_FAREWELL = re.compile(f"(?:.*\\W)?(?:{_FAREWELLS}){_AROUND}", re.DOTALL)
_PATTERNS = tuple(
    (task, re.compile(f"{_AROUND}(?:{pattern}){_AROUND}"))
    for task, *patterns in _SAID
    for pattern in patterns
)
# 翻译费怎么报销 is a question whose subject only sounds like a task; 帮我翻译这是什么 is a task.
_IS_ASKED = re.compile(
    r"(?!请(?!问)|麻烦|[您你]|能|可以|帮|[给为]我|把|将|please\b|(?:can|could|would|will) you\b)"
    rf".*(?:{HAN_ASKS}|\b(?:what|when|where|who|whom|which|why|how)\b)"
)


def understand(message: str) -> UnderstoodMessage | None:
    """Return what a message wants other than an answer from documents; None for a question."""
    if (result := arithmetic.compute(message)) is not None:
        return UnderstoodMessage(Task.ARITHMETIC, result)
    folded = fold(message).text.strip().replace("’", "'")
    if _COURTESY.fullmatch(folded):
        if _HAS_THANKS.fullmatch(folded):
            return UnderstoodMessage(Task.THANKS)
        return UnderstoodMessage(
            Task.FAREWELL if _HAS_FAREWELL.fullmatch(folded) else Task.GREETING
        )
    asked = without_greeting(folded)
    forms = {asked: None}
    if len(asked) < _MAX_COURTEOUS:
        forms[_AROUND_ASKED.sub("", asked)] = None
    for task, pattern in _PATTERNS:
        if match := next(filter(None, map(pattern.fullmatch, forms)), None):
            groups = {name: text for name, text in match.groupdict().items() if text}
            subject = next(iter(groups.values()), "").strip(" “”\"'《》的")
            is_asked = _IS_ASKED.match(asked) is not None
            if is_asked and task is Task.WRITING and not any(name[0] == "w" for name in groups):
                return None
            may_ask = is_asked or any(name.startswith("q") for name in groups)
            return UnderstoodMessage(task, subject, may_ask)
    return None


def reply_to(message: UnderstoodMessage, question: str, language: str) -> str | None:
    """Return the reply to a message that needs no documents; None where the documents decide."""
    if message.task is Task.ARITHMETIC:
        return message.subject
    reply = _REPLIES.get(message.task)
    if reply is None:
        return None
    return in_script_of(question, reply["zh"]) if language == "zh" else reply["en"]
