-- new_claims: claims for devices that are made, each [key, uid, JSON after the resourceVersion].
local function any_there(claims_key, claims)
  for _, claim in ipairs(claims) do
    if redis.call("HEXISTS", claims_key, claim[1]) == 1 then
      return true
    end
  end
  return false
end

local function make_claims(version_key, log_key, claims_key, log_length, head, claims)
  for _, claim in ipairs(claims) do
    local key, uid, tail = unpack(claim)
    local version = take_versions(version_key, 1) + 1
    local json = head .. string.format("%d", version) .. tail
    append(
      log_key, log_length, version, "change", "ADDED", "kind", "ResourceClaim", "key", key, "uid", uid, "object", json
    )
    redis.call("HSET", claims_key, key, json)
  end
end
