-- All counters of a node that may vote. Flags: allow-oom.
--
-- KEYS  1 state of the node
-- ARGV  1 run of the server
-- Gives fields and values in turn; nothing if this node has forgotten what it knew.
if redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] then
  return {}
end
return redis.call('HGETALL', KEYS[1])
