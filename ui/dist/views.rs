["log", "attributes", "timeline", "bulk", "site"]
