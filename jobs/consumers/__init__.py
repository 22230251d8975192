"""Consumers of the log that look after jobs, flows, cron jobs and history: they read, ask the rules, and write."""
