-- Lets a node vote, with counters that are at least these. Flags: allow-oom.
--
-- KEYS  1 state of the node
-- ARGV  1 run of the server, 2.. field and counter in turn; the field `floor` is for all buckets
-- Gives 1.
local call = redis.call
for i = 2, #ARGV, 2 do
  if tonumber(call('HGET', KEYS[1], ARGV[i]) or 0) < tonumber(ARGV[i + 1]) then
    call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
call('HDEL', KEYS[1], 'doubted', 'since')
call('HSET', KEYS[1], 'run', ARGV[1])
return 1
