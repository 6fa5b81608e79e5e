["log", "timeline", "site"]
