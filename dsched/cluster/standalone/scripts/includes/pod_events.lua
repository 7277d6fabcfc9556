-- pod_events: puts an event before a pod's others; a repeat of the newest one is counted instead.
local EVENTS_KEPT = 20
local EVENTS_EXPIRE_S = 3600

local function put_event(list_key, now_ms, kind, reason, message)
  local line = table.concat({ kind, reason, "1", now_ms, now_ms, message }, " ")
  if redis.call("LPUSH", list_key, line) > EVENTS_KEPT then
    redis.call("LTRIM", list_key, 0, EVENTS_KEPT - 1)
  end
  redis.call("EXPIRE", list_key, EVENTS_EXPIRE_S)
end

local function add_event(list_key, now_ms, kind, reason, message)
  local newest = redis.call("LINDEX", list_key, 0)
  local head = kind .. " " .. reason .. " "
  if newest and string.sub(newest, 1, #head) == head then
    local count, first, text = string.match(string.sub(newest, #head + 1), "^(%d+) (%d+) %d+ (.*)$")
    if text == message then
      redis.call("LSET", list_key, 0, head .. (tonumber(count) + 1) .. " " .. first .. " " .. now_ms .. " " .. text)
      redis.call("EXPIRE", list_key, EVENTS_EXPIRE_S)
      return
    end
  end
  put_event(list_key, now_ms, kind, reason, message)
end
