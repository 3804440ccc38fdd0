"""Untrusted mode: commands that plan a pipeline run in a process that can do little else.

`start` runs in the process of the user, which never reads the pipeline. The command itself runs in `__main__`, behind
four walls: the policy that our code asks, an audit hook for all of Python, rules of the kernel for everything else
(where it has them), and limits of memory and time.
"""
