["log", "site"]
