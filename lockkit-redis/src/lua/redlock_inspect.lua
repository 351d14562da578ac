-- What one node knows of a hold. Flags: allow-oom.
--
-- KEYS  1 hold, 2 state of the node
-- ARGV  1 bucket
-- Gives {hold or empty, what is left of its lease in ms, counter of the bucket or 0}.
local held = redis.call('GET', KEYS[1])
local counter = redis.call('HGET', KEYS[2], ARGV[1])
return { held or '', redis.call('PTTL', KEYS[1]), tonumber(counter or 0) }
