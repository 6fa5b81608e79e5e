["log", "attributes", "timeline", "bulk", "book", "site", "settings"]
