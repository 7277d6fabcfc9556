-- charges: what the pods on a node take up, as fields used.RESOURCE of node:NAME; each change moves its version by one.
local function charge(node_key, amounts, sign)
  for resource, amount in pairs(amounts) do
    redis.call("HINCRBY", node_key, "used." .. resource, sign .. amount)
  end
  redis.call("HINCRBY", node_key, "version", 1)
end
