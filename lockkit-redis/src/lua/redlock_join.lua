-- Asks one node whether it may vote: whether its counters are those of this server process, or of one
-- whose memory this process has read back whole. Flags: allow-oom.
--
-- KEYS  1 state of the node
-- ARGV  1 run of the server, 2 longest lease in ms that this client takes, 3 `1` if the server has
--       everything that it ever confirmed on its disk
-- Gives {state, ms since it was first found so, longest lease of any client in ms, its clock in
-- microseconds}; the state is 1 if it may vote, 2 if it has an older memory, 0 if it has none.
local call = redis.call
local node = call('HMGET', KEYS[1], 'run', 'lease', 'doubted', 'since')
local run = node[1]
local lease = math.max(tonumber(node[2] or 0), tonumber(ARGV[2]))
if run and run ~= ARGV[1] and ARGV[3] == '1' then
  call('HSET', KEYS[1], 'run', ARGV[1])
  run = ARGV[1]
end
if not node[2] or lease > tonumber(node[2]) then
  call('HSET', KEYS[1], 'lease', string.format('%d', lease))
end
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
if run == ARGV[1] then
  return { 1, 0, lease, micros }
end
local now = math.floor(micros / 1000)
local waited = 0
if node[3] == ARGV[1] and node[4] then
  waited = math.max(now - tonumber(node[4]), 0)
else
  call('HSET', KEYS[1], 'doubted', ARGV[1], 'since', string.format('%d', now))
end
return { run and 2 or 0, waited, lease, micros }
