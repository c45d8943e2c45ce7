"""What an agent is told about its memory, in its own language."""

from __future__ import annotations

from agents.models import Agent

INSTRUCTIONS = {
    "zh-hans": """\
## 长期记忆
你能跨会话记住事情：要记下重要信息时调用 memory_save，要查以前的信息时调用 memory_recall。

四种类型：
- user：用户是谁、偏好什么、有什么习惯
- project：项目的进展、决定和限制
- feedback：用户对你做法的纠正或认可
- reference：以后还要用到的链接和文档

何时记、怎么记：
- 用户说出偏好、角色或习惯，记为 user
- 得知项目的进展、决定或限制，记为 project
- 用户纠正或认可你的做法，记为 feedback
- 出现以后用得上的外部资源，记为 reference
- 已有相近的记忆就更新它，不要另建一条
- 只记对以后的对话有用的内容，不记密码和密钥""",
    "en": """\
## Long-term memory
You can remember things across sessions: call memory_save to note what is important, and \
memory_recall to look up what was said before.

Four types:
- user: who the user is, what they prefer, what their habits are
- project: a project's progress, decisions and constraints
- feedback: the user's corrections and confirmations of how you work
- reference: links and documents that will be needed again

When and how to remember:
- The user states a preference, a role or a habit: save it as user
- You learn of a project's progress, decisions or constraints: save it as project
- The user corrects or confirms how you work: save it as feedback
- An outside resource comes up that will be useful later: save it as reference
- Where a similar memory exists, update it instead of making another
- Save only what is useful in later conversations, never passwords or keys""",
}


def system_prompt(agent: Agent, block: str) -> str:
    """Return the whole system prompt as one text: the agent's own, the instructions, the block.

    One text, since some providers read the first system message only; the block comes last,
    so that what stands before it stays the same from turn to turn.
    """
    parts = (agent.system_prompt.strip(), INSTRUCTIONS[agent.language], block)
    return "\n\n".join(part for part in parts if part)
