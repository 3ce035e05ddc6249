package main

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// percentiles returns a nearest-rank percentile function; it sorts the samples.
func percentiles(d []time.Duration) func(float64) time.Duration {
	slices.Sort(d)
	return func(p float64) time.Duration {
		if len(d) == 0 {
			return 0
		}
		return d[max(int(math.Ceil(p*float64(len(d)))), 1)-1]
	}
}

// late is how much longer than asked it has been since t0.
func late(t0 time.Time, asked time.Duration) time.Duration {
	return max(time.Since(t0)-asked, 0)
}

// mix returns well mixed bits of i (splitmix64), the same as in the other peers.
func mix(i uint64) uint64 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// nthSleep is the i-th sleep of timers_sleep: 1..100 ms, on whole µs or whole ms.
func nthSleep(i int, wholeMs bool) time.Duration {
	if wholeMs {
		return time.Duration(1+mix(uint64(i))%100) * time.Millisecond
	}
	return time.Duration(1_000+mix(uint64(i))%99_001) * time.Microsecond
}

// nthLongSleep is the i-th with span=long: 1..10 s.
func nthLongSleep(i int) time.Duration {
	return time.Duration(1_000_000+mix(uint64(i))%9_000_001) * time.Microsecond
}

// ---- resources

type resources struct {
	cpu                    time.Duration
	voluntary, involuntary int64
}

func usageNow() resources {
	var ru syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	check(err == nil, "getrusage: %v", err)
	return resources{
		cpu:         time.Duration(ru.Utime.Nano() + ru.Stime.Nano()),
		voluntary:   ru.Nvcsw,
		involuntary: ru.Nivcsw,
	}
}

// rss is the resident bytes of this process now.
func rss() int {
	statm, err := os.ReadFile("/proc/self/statm")
	check(err == nil, "statm: %v", err)
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	check(err == nil, "statm: %v", err)
	return pages * 4096
}

// peakRSS is the peak resident kB. (Not getrusage's Maxrss: that one starts at the parent's
// at exec.)
func peakRSS() int {
	status, err := os.ReadFile("/proc/self/status")
	check(err == nil, "status: %v", err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(peak)[0])
	check(err == nil, "status: %v", err)
	return kb
}

// ---- CPU work

// sumTo is 0 + 1 + ... + (n - 1), one addition at a time.
func sumTo(n int) int {
	sum := 0
	for i := range n {
		sum += i
	}
	return sum
}

// spin is pure arithmetic that never yields.
//
//go:noinline
func spin(iters int) uint64 {
	x := uint64(1)
	for range iters {
		x = x * 5 % 1_000_003
	}
	return x
}

// calibrate says how many spin iterations take d of CPU here: the best of ten tries.
func calibrate(d time.Duration) int {
	const try = 500_000
	best := time.Hour
	for range 10 {
		t0 := time.Now()
		spin(try)
		best = min(best, time.Since(t0))
	}
	return int(try * d.Seconds() / best.Seconds())
}

// ---- expected results of the benches

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// fibSpawns is how many goroutines forkjoin_fib starts for fib(n).
func fibSpawns(n int) int {
	if n < 10 {
		return 0
	}
	return 1 + fibSpawns(n-1) + fibSpawns(n-2)
}

// sieveTruth is the n-th prime, and the channel transfers that a filter chain needs for it.
func sieveTruth(n int) (prime, transfers int) {
	var primes []int
	for i := 2; len(primes) < n; i++ {
		k := slices.IndexFunc(primes, func(p int) bool { return i%p == 0 })
		if k < 0 {
			primes = append(primes, i)
			k = len(primes) - 1
		}
		transfers += k + 1
	}
	return primes[n-1], transfers
}
