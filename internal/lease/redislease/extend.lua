-- EXTEND: renew a lease, and raise its fence if asked to.
-- KEYS fn, q, lk
-- ARGV 1 token  2 ttl ms  3 fence to raise to, or 0
-- Returns {1, left before, waiting}   {0} not held   {-1, stored fence} fence not higher

local fn, q, lk = KEYS[1], KEYS[2], KEYS[3]
local token, ttl, raise = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if not ttl or ttl < 1 then return redis.error_reply('INVALID ttl must be at least 1 ms') end

local value = redis.call('GET', lk)
if not mine(value, token) then return {0} end

if raise > 0 then
  local stored = redis.call('HGET', fn, 'f') or '0'
  if raise <= tonumber(stored) then return {-1, stored} end
  local fence = string.format('%.0f', raise)
  redis.call('HSET', fn, 'f', fence)
  redis.call('PEXPIRE', fn, 30 * DAY)
  redis.call('SET', lk, token .. ' ' .. fence .. string.match(value, '^%S+ %S+(.*)$'), 'KEEPTTL')
end

local left = redis.call('PTTL', lk)
if left < ttl then redis.call('PEXPIRE', lk, ttl) end
return {1, left, redis.call('ZCARD', q)}
