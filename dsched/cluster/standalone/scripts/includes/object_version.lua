-- object_version: version and uid of a stored object, both "" where there is none, nil where it is no object; what dsched
--   stores begins so, what somebody else has written is decoded.
local OBJECT_HEAD = '^{"apiVersion":"[^"]*","kind":"[^"]*","metadata":{"resourceVersion":"(%d+)","uid":"([^"]*)"'

local function object_version(json)
  if not json then
    return "", ""
  end
  local version, uid = string.match(json, OBJECT_HEAD)
  if version then
    return version, uid
  end
  local read, object = pcall(cjson.decode, json)
  local metadata = read and type(object) == "table" and object.metadata
  if type(metadata) ~= "table" or type(metadata.resourceVersion) ~= "string" then
    return nil, ""
  end
  return metadata.resourceVersion, type(metadata.uid) == "string" and metadata.uid or ""
end
