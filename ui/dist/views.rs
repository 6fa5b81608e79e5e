["log", "attributes", "timeline", "site"]
