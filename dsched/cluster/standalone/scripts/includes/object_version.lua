-- object_version: version and uid of a stored object, both "" where there is none; every stored object begins so.
local OBJECT_HEAD = '^{"apiVersion":"[^"]*","kind":"[^"]*","metadata":{"resourceVersion":"(%d+)","uid":"([^"]*)"'

local function object_version(json)
  if not json then
    return "", ""
  end
  return string.match(json, OBJECT_HEAD)
end
