-- Lets a node vote, with counters that are at least these. Flags: allow-oom.
--
-- KEYS  1 state of the node
-- ARGV  1 run of the server, 2 `1` to count on from the server's clock as well, 3.. field and
--       counter in turn
-- Gives 1.
local call = redis.call
local function raise(field, counter)
  if tonumber(call('HGET', KEYS[1], field) or 0) < counter then
    call('HSET', KEYS[1], field, string.format('%d', counter))
  end
end
for i = 3, #ARGV, 2 do
  raise(ARGV[i], tonumber(ARGV[i + 1]))
end
if ARGV[2] == '1' then
  local time = call('TIME')
  raise('floor', tonumber(time[1]) * 1000000 + tonumber(time[2]))
end
call('HDEL', KEYS[1], 'doubted', 'since')
call('HSET', KEYS[1], 'run', ARGV[1])
return 1
