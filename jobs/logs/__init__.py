"""Logs of pods as people read them: lines of many logs in order of time, with colours and links."""
