"""Sixty-odd memories of one person, in Chinese and English, and what is asked of them."""

_MEMORIES = """
user | 喜欢简短的回答 | | 先给结论，再给依据；不要长篇铺垫。
user | Short answers | how Ming wants replies | Ming wants the conclusion first, then the reasons.
user | 咖啡 | | 早上喝美式咖啡，不加糖，下午不喝咖啡。
user | Tea in the afternoon | | Ming drinks green tea after lunch and no coffee after two.
user | 花生过敏 | 饮食禁忌 | 对花生过敏，点餐前要确认酱料。
user | Peanut allergy | | Peanuts make Ming ill; ask about sauces before ordering.
user | 时区 | | 常驻上海，工作时间是北京时间九点到六点。
user | Working hours | | Works nine to six, Shanghai time; no meetings on Wednesday mornings.
user | Role | what Ming does | Ming leads the payments team and reviews every deploy.
user | 职位 | | 支付团队负责人，负责评审每次上线。
user | Languages | | Speaks Mandarin and English; writes code comments in English.
user | 编辑器 | | 用 Neovim 写 Python，不喜欢自动补全弹窗。
user | Keyboard | | Types on a Dvorak layout; shortcuts in answers should name keys, not positions.
user | 跑步 | | 每周二和周四晚上跑步，膝盖旧伤不能跑长距离。
user | Marathon | | Ran the Shanghai marathon in 2025 in four hours and ten minutes.
user | 女儿 | 家庭 | 女儿小雨今年七岁，九月上小学。
user | Birthday | | Ming's birthday is on the 3rd of December.
user | 生日 | | 太太的生日是五月二十一日，记得提前一周提醒。
project | 支付模块重构 | 进度 | 支付模块重构进行到第三阶段，联调排在12月3日，错误码由周宁负责。
project | Payments refactoring | progress | Phase three; joint tests start on December 3.
project | 上线窗口 | | 支付模块周五上线，上线前两小时冻结代码。
project | Deploy window | | Ming deploys on Fridays; code freezes two hours before each deploy.
project | gen-itgc 重跑 | | 步骤2 重跑gen-itgc后50条悬空引用清零。
project | Dangling references | | Rerunning gen-itgc cleared all 50 dangling references.
project | 端到端测试 | | 端到端测试通过，剩下性能测试。
project | End-to-end tests | | The end-to-end tests pass; the load test is still to be run.
project | 发票服务 | | 发票服务每晚两点对账，失败会重试三次。
project | Invoice service | nightly | Reconciles at two every night and retries three times.
project | 退款流程 | | 退款超过一万元需要财务审批。
project | Refund rule | | Refunds above 10,000 yuan need the finance team's approval.
project | 数据库迁移 | | 订单库从 MySQL 5.7 升级到 8.0，停机不超过十分钟。
project | Database migration | | Orders move from MySQL 5.7 to 8.0 in ten minutes.
project | 缓存 | | 商品缓存过期时间是三百秒，键名前缀是 item_v2。
project | Cache keys | | Product cache keys begin with item_v2 and expire after 300 seconds.
project | 错误码 | | E1042 表示余额不足，E1043 表示风控拒绝。
project | Error codes | | E1042 means insufficient balance, E1043 means refused by risk control.
project | Mobile release 3.2.1 | | The mobile app 3.2.1 ships on the 14th with the new login page.
project | 登录页 | | 新登录页支持短信验证码和扫码登录。
project | Budget | | The cloud budget for Q4 is 100% spent; new machines need approval.
project | 预算 | | 第四季度云预算已用完，新增机器要审批。
project | Monitoring | | Alerts go to the on-call phone when p99 latency passes 800 ms.
project | 监控告警 | | p99 延迟超过800毫秒会电话告警给值班同学。
project | 灰度发布 | | 先放百分之五的流量，观察三十分钟再全量。
project | Canary | | Send five percent of the traffic first and watch for thirty minutes.
feedback | 不要用表格 | | 用户纠正：手机上看不了表格，改用列表。
feedback | No tables | correction | Tables are unreadable on Ming's phone; use lists.
feedback | 先问再改 | | 改动生产配置前要先征得同意。
feedback | Ask first | | Ask before any change of production settings.
feedback | 单元测试 | | 用户认可：修复缺陷时先写失败的单元测试。
feedback | Failing test first | praise | Ming liked that the fix began with a failing unit test.
feedback | 称呼 | | 不要叫「您」，叫「你」就好。
feedback | Emoji | | No emoji 🎉 in commit messages.
feedback | 代码风格 | | 变量名用 snake_case，例如 file_name，不用拼音。
feedback | Naming | | Use snake_case such as file_name for variables, never fileXname.
feedback | 日期格式 | | 日期写成 2026-12-03 这种格式。
reference | Runbook | wiki | https://wiki.example.org/runbooks/payments-rollback
reference | 回滚手册 | | 支付回滚手册在 https://wiki.example.org/runbooks/payments-rollback
reference | Dashboard | | Grafana: https://grafana.example.org/d/pay-latency
reference | 接口文档 | | 支付接口文档在内网 docs/pay/v2/openapi.yaml
reference | Style guide | | The team's style guide lives at docs/style-guide.md
reference | 周宁 | 联系人 | 周宁，错误码负责人，邮箱 zhou.ning@example.org
reference | Support | contact | Write to support+pay@example.org for merchant questions.
reference | libicu | | libicuio lives under opt/icu4c@78/lib
reference | C++ notes | | The C++ SDK needs c++17; the C# one needs .NET 8.
reference | 繁體說明 | | 軟體開發文件：支付模組的設定方式。
reference | 合同 | | 与收单行的合同编号是 HT-2026-0317，明年三月到期。
reference | Contract | | The acquirer contract HT-2026-0317 ends next March.
"""

MEMORIES = [
    dict(zip(("type", "name", "description", "content"), map(str.strip, fields), strict=True))
    for fields in (line.split("|") for line in _MEMORIES.strip().splitlines())
]

QUERIES = """
支付
支付模块
支付模組
When does Ming deploy?
deploys
上线窗口是什么时候
什么时候可以上线？
invoice
发票对账失败怎么办
refund approval
退款一万元要谁审批
gen-itgc
itgc
50条
悬空引用
端到端测试结果
end-to-end
E1042
余额不足
item_v2
file_name
100%
C++
c++17
opt/icu4c@78/lib
zhou.ning@example.org
HT-2026-0317
合同什么时候到期
MySQL 8.0
数据库升级要停机多久
peanuts
花生
coffee
咖啡
the
我们
are
周
QA
🎉
生日
Ming's birthday
3rd
软体设定方式
軟體開發
Where is the runbook for rolling back payments?
canary traffic percent
snake_case variables in Python
how long, and for whom, are alerts sent when latency passes 800 ms
告警延迟超过800毫秒
kumquat
-deploy
"deploy
deploy AND NOT friday
*
""".strip().splitlines()
