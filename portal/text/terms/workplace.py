"""Words of the workplace between Chinese and English that CC-CEDICT lacks or translates in other
senses: it has 陪产假 and "dormitory", but neither 门禁卡 nor "salary" for 工资.
"""

from __future__ import annotations

from collections.abc import Iterator

# Chinese words and what they mean in English; each word on the left means each on the right.
_GLOSSARY = """
年假 年休假 带薪假: annual leave, vacation, paid leave, holiday, pto
病假: sick leave, sickness
事假: personal leave, unpaid leave
产假: maternity leave
陪产假 护理假: paternity leave
婚假: marriage leave, wedding leave
丧假: bereavement leave, compassionate leave, funeral leave
育儿假: parental leave, childcare leave
请假 休假: leave, day off, days off, time off
调休 补休: time off in lieu, compensatory leave, comp time
节假日 法定节假日 公众假期: public holiday, bank holiday
在家办公 居家办公 远程办公 远程工作 在家上班: work from home, remote work, work remotely, telework
加班: overtime, work late, extra hours
加班费: overtime pay, overtime
考勤: attendance, timekeeping
打卡: clock in, check in, time clock
迟到: late, lateness
早退: leave early
午休: lunch break, lunch
上班: work, start work
上班时间 工作时间: working hours, office hours, opening hours
值班: on call, on duty, on-call
轮班 排班: shift, roster, rota
夜班: night shift
入职 报到: onboarding, first day, join, joining, start
新员工 新人: new employee, new hire, new starter, newcomer, new joiner
试用期: probation, probation period, trial period
转正: pass probation, end of probation, permanent
离职 辞职: resign, resignation, quit, notice, leave company
辞退 解雇: dismissal, dismiss, termination, fired
实习生: intern, trainee
兼职: part-time, side job, second job
招聘: hiring, recruitment, recruit
工资 薪资 薪水 薪酬: salary, wage, pay, payroll
工资条 工资单: payslip, pay stub
年终奖 奖金: bonus, year-end bonus, annual bonus
全勤奖: attendance bonus
补贴 津贴 补助: allowance, subsidy
餐补 饭补 餐费补贴: meal allowance, meals
午餐补贴: lunch allowance
交通补贴: transport allowance, commuting allowance
公积金: housing fund, provident fund
社保 五险一金: social insurance, social security
医疗保险: health insurance, medical insurance
福利: benefits, perks
体检 健康检查: health check, medical check, medical examination, check-up, checkup
绩效: performance, appraisal, performance review
晋升: promotion
培训: training, course
主管 上级 领导: supervisor, manager, boss
直属主管 直接上级 直属上级: line manager, direct manager, supervisor
总经理: general manager, managing director, ceo
财务: finance, accounting
人事 人事部 人力资源: hr, human resources, personnel
行政 行政部: administration, office manager, admin
前台: reception, front desk
批准 审批 审核: approve, approval, sign off, authorise, authorize
负责人: responsible, in charge, owner, lead
联系人: contact, contact person
手机号 手机号码: mobile number, mobile phone, cell phone, phone number
分机 分机号: extension, ext
邮箱 邮件地址 电子邮箱: email, e-mail, email address, mailbox
出差: business trip, business travel, travel
差旅: travel, travel expenses
差旅费: travel expenses, travel cost
住宿 酒店 宾馆: hotel, accommodation, lodging
住宿费 酒店费: hotel cost, accommodation cost, hotel, lodging
机票: flight, air ticket, airfare
高铁 火车: train, rail, high-speed train
打车 出租车 网约车: taxi, cab, ride
市内交通: local transport, local travel, taxi
班车: shuttle, shuttle bus
报销: reimburse, reimbursed, reimbursement, refund, expense claim, expenses, claim
报销单: expense report, expense claim, claim form
费用: expense, cost, fee
发票: invoice, receipt
预算: budget
买 购买: buy, purchase
采购: purchasing, procurement, purchase
预付款 定金: advance payment, down payment, deposit, prepayment
尾款: balance, final payment, remainder
押金 保证金: deposit, security deposit
付款 支付: payment, pay
到账 打款: paid, paid out, transfer
退款: refund, money back
退货 退换: return, returned, returns
增值税: vat, value added tax
折扣 优惠: discount
单价 价格 售价 报价: price, unit price
涨价: price increase
起订量 最低起订量: minimum order, minimum order quantity, moq
交货期: lead time, delivery time
交货 送货 到货: delivery, deliver, delivered, arrive
发货: ship, shipping, dispatch
运费: shipping, shipping cost, postage, freight, delivery cost
包邮: free shipping, free delivery
快递 包裹: parcel, package, courier
库存: stock, inventory
仓库: warehouse, storage
质保 保修 质保期 保修期: warranty, guarantee, warranty period
修 维修 修理 检修: repair, fix, maintenance
保养 维护: maintenance, service
售后: after-sales, customer service, support
客服: customer service, support
客户 顾客: customer, client
供应商 供货商: supplier, vendor
投诉: complaint, complain
合同 协议: contract, agreement
续签 续约 续期: renewal, renew, extend
终止 解除: terminate, termination, cancel, end
违约金 罚款 罚金: penalty, fine
逾期 超期 过期: overdue, late, past due
截止日期 截止时间 最后期限: deadline, due date, closing date
保密: confidential, confidentiality, secrecy, nda
租金 房租: rent
租客 租户 承租人: tenant
房东 出租人: landlord
物业: property management, building management, facilities
门禁卡 门卡 工卡 工牌: access card, badge, staff card, key card, id card
停车 泊车: park, parking
停车位 车位: parking space, parking spot, parking
停车场 车库: car park, parking lot, garage
茶水间: kitchen, pantry, tea room
食堂 餐厅: canteen, cafeteria, restaurant
会议室: meeting room, conference room
会议纪要 纪要: minutes, meeting minutes
出席 参会 与会: present, attend, attendees, participants
缺席 未出席: absent, excused, apologies, not present
年会: annual party, year-end party, annual meeting
团建: team building, team event, company outing
打扫 保洁 清洁: clean, cleaning
搬家 搬迁 搬办公室: move, moving, relocation
灭火器: fire extinguisher
急救: first aid
急救箱: first aid kit, first aid box
集合点 集合地点: assembly point, meeting point
疏散 撤离: evacuate, evacuation
火灾 着火 火警: fire
停电: power cut, power failure, power outage, blackout
漏水: leak, water leak, flood
安全出口 紧急出口: emergency exit, exit
电脑 笔记本 笔记本电脑 计算机: laptop, computer, notebook, machine
打印机: printer
密码 口令: password, passphrase, passcode
多因素认证 双因素认证: mfa, 2fa, multi-factor authentication, two-factor authentication
两步验证 双重认证: 2fa, two-factor authentication, two-step verification
无线网 无线网络: wifi, wi-fi, wireless
账号 账户: account, user account
权限: permission, access, access rights
备份: backup, back up, backed up
丢 丢失 遗失 弄丢: lost, lose, missing
偷 被偷 被盗 失窃: stolen, theft
故障: outage, failure, fault, incident
上线 发布: release, launch, go live, deploy, rollout
回滚: roll back, rollback, revert
部署: deploy, deployment
服务器: server
共享盘 文件服务器: file server, shared drive
访客 来宾: visitor, guest
礼品 礼物: gift
宠物: pet
狗: dog
猫: cat
车: car
药 药品: medicine, medication, drug
税: tax
开门 营业: open, opening
关门 打烊 闭馆 不开门: close, closed
入住: check in
退房: check out
预订 预约: book, booking, reserve, reservation, appointment
改签 改期: rebook, reschedule, change date
退票: refund, ticket refund
佣金 抽成: commission
收费: charge, fee
免费: free, free of charge
上限 限额: limit, cap, maximum
会议记录: minutes
制度 规定 规章: policy, rules, regulations
流程 步骤: process, procedure, steps
有效期: valid, validity
生效: effective, take effect, come into force
领取: collect, pick up
借用 借: borrow, loan
归还 还: return, give back, hand in
集合: gather, meet, assemble
报警: alarm, call police
推迟 延期: postpone, delay
提前: early, in advance, ahead, beforehand
增长: growth, increase, rise
销售额: sales
营收 收入: revenue, turnover
退货率: return rate
法务: legal, legal department
外包: contractor, outsourced
小组 团队: team, group
教练: coach, instructor, trainer
导师: supervisor, adviser, mentor
投稿: submission, submit
家属: family, relatives
素食: vegetarian, vegan
颜色: colour, color
批次: batch, lot
充电: charge, charging
电源: power, power supply
水电费: utilities, utility bill
垃圾: rubbish, waste, trash
电梯: lift, elevator
冰箱: fridge, refrigerator
硬盘: disk, hard drive
耳机: headset, headphones
复印: copy, photocopy
视频会议: video call, video conference
日报 周报 月报: report
母婴室: nursing room, baby room
吸烟 抽烟: smoke, smoking
"""


def glossary() -> Iterator[tuple[str, str]]:
    """Yield pairs of a Chinese word and an English word or phrase that mean the same."""
    for line in _GLOSSARY.strip().splitlines():
        chinese, english = line.split(": ")
        for word in chinese.split():
            for meaning in english.split(", "):
                yield word, meaning
