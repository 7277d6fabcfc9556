-- watch_log: versions and the watch log. take_versions takes the next versions for so many changes and returns the one
-- before them; append writes a change: its version, then fields and values.
local function take_versions(version_key, count)
  return redis.call("INCRBY", version_key, count) - count
end

local function append(log_key, length, version, ...)
  redis.call("XADD", log_key, "MAXLEN", "~", length, string.format("%d-0", version), ...)
end
