/**
 * One draw from a bucket in Redis or Valkey, in one atomic step on the server's clock: the steps of bucket.ts.
 *
 * KEYS[1] holds `tokens remainder updated_ms limit_value interval_ms burst_value` as text; it goes a minute after the
 * bucket is full again, because a full bucket is as good as none. ARGV: limit_value, interval_ms, burst_value, tokens
 * requested. Returns whether it was admitted (1 or 0), tokens, remainder and the server's time in ms.
 *
 * Numbers are doubles here too. `math.fmod` is exact where Lua's `%` is not.
 */
export const BUCKET_SCRIPT = `
local EXACT_MAX, FORGET_MS, FORGET_MAX_MS = 9007199254740991, 60000, 1000000000000
local fmod = math.fmod

local function divided(a, divisor)
  local rest = fmod(a, divisor)
  return (a - rest) / divisor, rest
end

local function added(a_whole, a_rest, b_whole, b_rest, divisor)
  if a_rest >= divisor - b_rest then return a_whole + b_whole + 1, a_rest - (divisor - b_rest) end
  return a_whole + b_whole, a_rest + b_rest
end

local function share(a, b, divisor)
  local product = a * b
  if product <= EXACT_MAX then return divided(product, divisor) end
  local once_whole, once_rest = divided(b, divisor)
  local whole, rest, digit = 0, 0, 4503599627370496
  while digit >= 1 do
    whole, rest = added(whole, rest, whole, rest, divisor)
    if a >= digit then
      a = a - digit
      whole, rest = added(whole, rest, once_whole, once_rest, divisor)
    end
    digit = digit / 2
  end
  return whole, rest
end

local limit, interval, burst, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local tokens, remainder = burst, 0

local stored = redis.call('GET', KEYS[1])
if stored then
  local t, r, u, l, i, b = string.match(stored, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if t then
    t, r, u, l, i, b = tonumber(t), tonumber(r), tonumber(u), tonumber(l), tonumber(i), tonumber(b)
    local room = b - t
    if room > 0 then
      local whole, rest = divided(math.max(0, now - u), i)
      local gained = whole * l
      if gained < room then
        local part, part_rest = share(rest, l, i)
        part, part_rest = added(part, part_rest, 0, r, i)
        gained, r = gained + part, part_rest
      end
      if gained >= room then t, r = b, 0 else t = t + gained end
    end
    if l == limit and i == interval and b == burst then
      tokens, remainder = t, r
    elseif b > 0 then
      tokens = share(t, burst, b)
    end
  end
end

local admitted = 0
if limit > 0 and tokens >= requested then
  admitted = 1
  tokens = tokens - requested
end
local forget_ms = FORGET_MAX_MS
if limit > 0 then forget_ms = math.min(FORGET_MAX_MS, math.ceil((burst - tokens) / limit * interval) + FORGET_MS) end
redis.call('SET', KEYS[1],
  string.format('%.0f %.0f %.0f %.0f %.0f %.0f', tokens, remainder, now, limit, interval, burst),
  'PX', string.format('%.0f', forget_ms))
return {admitted, tokens, remainder, now}
`;
