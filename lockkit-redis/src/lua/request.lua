-- Asks whoever holds a resource, and lives, to let go. After hall.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x
-- ARGV  1 inbox prefix, 2 key of the resource
-- Gives how many were asked. Detached holds are not: nobody would hear.
local asked = 0
for _, attempt in ipairs(call('ZRANGEBYSCORE', KEYS[2], '(' .. format('%d', now_ms()), '+inf')) do
  local record = call('HGET', KEYS[1], attempt)
  local hold = record and read_hold(record)
  if hold and not match(hold.flags, 'd') then
    asked = asked + 1
    if not match(hold.flags, 'a') then
      hold.flags = hold.flags .. 'a'
      call('HSET', KEYS[1], attempt, write_hold(hold))
    end
    if hold.client ~= '' then
      redis.pcall('PUBLISH', ARGV[1] .. hold.client, 'a' .. attempt .. ARGV[2])
    end
  end
end
return asked
