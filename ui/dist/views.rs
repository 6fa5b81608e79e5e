["log"]
