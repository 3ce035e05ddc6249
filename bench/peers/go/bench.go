package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ---- tasks

func spawnJoin(a *args) *report {
	n := a.n(1_000_000)
	t0 := time.Now()
	for left := n; left > 0; left -= 1000 {
		var wave sync.WaitGroup
		for range min(left, 1000) {
			wave.Go(func() {})
		}
		wave.Wait()
	}
	return a.report(n).time(time.Since(t0), n)
}

func spawnBurst(a *args) *report {
	n := a.n(1_000_000)
	var count atomic.Int64
	var all sync.WaitGroup
	t0 := time.Now()
	for range n {
		all.Go(func() { count.Add(1) })
	}
	all.Wait()
	took := time.Since(t0)
	check(count.Load() == int64(n), "count %d", count.Load())
	return a.report(n).time(took, n)
}

func parkedMemory(a *args) *report {
	n := a.n(1_000_000)
	ch := make(chan struct{})
	var allHere, all sync.WaitGroup
	allHere.Add(n)
	debug.FreeOSMemory()
	before := rss()
	t0 := time.Now()
	for range n {
		all.Go(func() {
			allHere.Done()
			<-ch
		})
	}
	allHere.Wait()
	spawned := time.Since(t0)
	time.Sleep(200 * time.Millisecond)
	bytes := rss() - before
	t1 := time.Now()
	close(ch)
	all.Wait()
	woken := time.Since(t1)
	return a.report(n).
		time(spawned, n).
		set("bytes_per_task", float64(bytes)/float64(n)).
		set("wake_ns_per_task", float64(woken)/float64(n)).
		set("via", "closed channel")
}

func yields(a *args, tasks int) *report {
	a.onOneProc()
	each := (a.n(5_000_000) + tasks - 1) / tasks
	n := each * tasks
	var all sync.WaitGroup
	t0 := time.Now()
	for range tasks {
		all.Go(func() {
			for range each {
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	return a.report(n).time(time.Since(t0), n)
}

// ---- channels

func channel(a *args) (capacity int, name string) {
	capacity = a.int("cap", 0)
	return capacity, fmt.Sprintf("go chan cap %d", capacity)
}

func pingpong(a *args) *report {
	n := a.n(2_000_000)
	capacity, name := channel(a)
	ping, pong := make(chan int, capacity), make(chan int, capacity)
	t0 := time.Now()
	go func() {
		for v := range ping {
			pong <- v + 1
		}
	}()
	done := make(chan int)
	go func() {
		ball := 0
		for range n {
			ping <- ball
			ball = <-pong
		}
		close(ping)
		done <- ball
	}()
	ball := <-done
	took := time.Since(t0)
	check(ball == n, "ball %d", ball)
	return a.report(n).time(took, n).set("channel", name)
}

// chans has so many producers and as many consumers.
func chans(a *args, pairs int) *report {
	each := (a.n(5_000_000) + pairs - 1) / pairs
	n := each * pairs
	capacity := a.int("cap", 128)
	ch := make(chan int, capacity)
	sums := make(chan int)
	var producers sync.WaitGroup
	t0 := time.Now()
	for p := range pairs {
		producers.Go(func() {
			for i := range each {
				ch <- p*each + i
			}
		})
	}
	go func() {
		producers.Wait()
		close(ch)
	}()
	for range pairs {
		go func() {
			sum := 0
			for v := range ch {
				sum += v
			}
			sums <- sum
		}()
	}
	sum := 0
	for range pairs {
		sum += <-sums
	}
	took := time.Since(t0)
	check(sum == n*(n-1)/2, "sum %d", sum)
	return a.report(n).time(took, n).set("channel", fmt.Sprintf("go chan cap %d", capacity))
}

func select4(a *args) *report {
	each := (a.n(1_000_000) + 3) / 4
	n := 4 * each
	capacity, name := channel(a)
	var chs [4]chan int
	t0 := time.Now()
	for p := range chs {
		chs[p] = make(chan int, capacity)
		go func() {
			defer close(chs[p])
			for i := range each {
				chs[p] <- p*each + i
			}
		}()
	}
	type result struct{ sum, count int }
	done := make(chan result)
	go func() {
		var r result
		w, x, y, z := chs[0], chs[1], chs[2], chs[3]
		for w != nil || x != nil || y != nil || z != nil {
			var v int
			var ok bool
			select { // a nil channel is never ready
			case v, ok = <-w:
				if !ok {
					w = nil
				}
			case v, ok = <-x:
				if !ok {
					x = nil
				}
			case v, ok = <-y:
				if !ok {
					y = nil
				}
			case v, ok = <-z:
				if !ok {
					z = nil
				}
			}
			if ok {
				r.sum += v
				r.count++
			}
		}
		done <- r
	}()
	r := <-done
	took := time.Since(t0)
	check(r == result{n * (n - 1) / 2, n}, "%v", r)
	return a.report(n).time(took, n).set("channel", name)
}

// ---- locks

const lockers = 8

func mutex(a *args) *report {
	each := (a.n(2_000_000) + lockers - 1) / lockers
	n := each * lockers
	var mu sync.Mutex
	var all sync.WaitGroup
	total := 0
	t0 := time.Now()
	for range lockers {
		all.Go(func() {
			for range each {
				mu.Lock()
				total++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	took := time.Since(t0)
	check(total == n, "total %d", total)
	return a.report(n).time(took, n).set("lock", "sync.Mutex")
}

func rwmutex(a *args) *report {
	const group = lockers * 10
	each := (a.n(2_000_000) + group - 1) / group * 10
	n := each * lockers
	var mu sync.RWMutex
	var all sync.WaitGroup
	total := 0
	t0 := time.Now()
	for range lockers {
		all.Go(func() {
			seen := 0
			for i := range each {
				if i%10 == 0 {
					mu.Lock()
					total++
					mu.Unlock()
				} else {
					mu.RLock()
					seen = max(seen, total)
					mu.RUnlock()
				}
			}
			check(seen <= n/10, "seen %d", seen)
		})
	}
	all.Wait()
	took := time.Since(t0)
	check(total == n/10, "total %d", total)
	return a.report(n).time(took, n).set("lock", "sync.RWMutex")
}

// ---- whole programs

func fanout(a *args) *report {
	const width = 16
	rounds := a.n(10_000)
	var count atomic.Int64
	t0 := time.Now()
	for range rounds {
		var all sync.WaitGroup
		for range width {
			all.Go(func() { count.Add(1) })
		}
		all.Wait()
	}
	took := time.Since(t0)
	check(count.Load() == int64(rounds*width), "count %d", count.Load())
	return a.report(rounds).
		time(took, rounds).
		set("ns_per_task", float64(took)/float64(rounds*width))
}

func skynet(a *args) *report {
	n := 1
	for want := a.n(1_000_000); n*10 <= want; {
		n *= 10
	}
	capacity, name := channel(a)
	var node func(out chan<- int, first, size int)
	node = func(out chan<- int, first, size int) {
		if size == 1 {
			out <- first
			return
		}
		in := make(chan int, capacity)
		child := size / 10
		for i := range 10 {
			go node(in, first+i*child, child)
		}
		sum := 0
		for range 10 {
			sum += <-in
		}
		out <- sum
	}
	t0 := time.Now()
	out := make(chan int, capacity)
	go node(out, 0, n)
	sum := <-out
	took := time.Since(t0)
	check(sum == n*(n-1)/2, "sum %d", sum)
	return a.report(n).time(took, n).set("channel", name)
}

func ring(a *args) *report {
	const size = 503
	hops := a.n(1_000_000)
	capacity, name := channel(a)
	done := make(chan int)
	first := make(chan int, capacity)
	in := first
	for id := range size {
		out := make(chan int, capacity)
		if id == size-1 {
			out = first
		}
		go func(in <-chan int, out chan<- int) {
			for left := range in {
				if left == 0 {
					done <- id
					return
				}
				out <- left - 1
			}
		}(in, out)
		in = out
	}
	t0 := time.Now()
	first <- hops
	last := <-done
	took := time.Since(t0)
	check(last == hops%size, "last %d", last)
	return a.report(hops).time(took, hops).set("channel", name)
}

func sieve(a *args) *report {
	n := a.n(2000)
	truth, transfers := sieveTruth(n)
	capacity, name := channel(a)
	t0 := time.Now()
	ch := make(chan int, capacity)
	go func(out chan<- int) {
		for i := 2; ; i++ {
			out <- i
		}
	}(ch)
	prime := 0
	for range n {
		prime = <-ch
		filtered := make(chan int, capacity)
		go func(in <-chan int, out chan<- int, prime int) {
			for i := range in {
				if i%prime != 0 {
					out <- i
				}
			}
		}(ch, filtered, prime)
		ch = filtered
	}
	took := time.Since(t0)
	check(prime == truth, "prime %d", prime)
	return a.report(n).time(took, transfers).set("last_prime", prime).set("channel", name)
}

func forkjoinTask(n int) int {
	if n < 10 {
		return fib(n)
	}
	left := make(chan int, 1)
	go func() { left <- forkjoinTask(n - 1) }()
	right := forkjoinTask(n - 2)
	return <-left + right
}

func forkjoinFib(a *args) *report {
	n := a.n(27)
	reps := a.int("reps", 50)
	truth, spawns := fib(n), reps*fibSpawns(n)
	t0 := time.Now()
	for range reps {
		got := forkjoinTask(n)
		check(got == truth, "fib %d", got)
	}
	took := time.Since(t0)
	return a.report(n).
		time(took, spawns).
		set("reps", reps).
		set("secs_per_rep", took.Seconds()/float64(reps))
}

func stealUneven(a *args) *report {
	rounds := a.n(200)
	var total, tasks atomic.Int64
	t0 := time.Now()
	for range rounds {
		var spawners sync.WaitGroup
		for p := range a.procs {
			spawners.Go(func() {
				var share sync.WaitGroup
				for range 100 + 50*p {
					share.Go(func() { total.Add(int64(sumTo(10_000))) })
				}
				share.Wait()
				tasks.Add(int64(100 + 50*p))
			})
		}
		spawners.Wait()
	}
	took := time.Since(t0)
	check(total.Load() == tasks.Load()*49_995_000, "total %d", total.Load())
	return a.report(rounds).time(took, int(tasks.Load())).set("tasks", tasks.Load())
}

// ---- timers

func timersSleep(a *args) *report {
	n := a.n(200_000)
	wholeMs := a.text("grain", "us") == "ms"
	long, gated := a.text("span", "short") == "long", a.int("gate", 0) != 0
	lateness := make([]time.Duration, n)
	gate := make(chan struct{})
	var allHere, all sync.WaitGroup
	allHere.Add(n)
	t0 := time.Now()
	for i := range n {
		all.Go(func() {
			asked := nthSleep(i, wholeMs)
			if long {
				asked = nthLongSleep(i)
			}
			if gated {
				allHere.Done()
				<-gate
			}
			t0 := time.Now()
			time.Sleep(asked)
			lateness[i] = late(t0, asked)
		})
	}
	if gated {
		allHere.Wait()
		time.Sleep(200 * time.Millisecond)
		t0 = time.Now()
		close(gate)
	}
	all.Wait()
	return a.report(n).secs(time.Since(t0)).lateness(lateness)
}

func timerChurn(a *args) *report {
	n := a.n(2_000_000)
	// AfterFunc arms the timer. NewTimer's is armed only while something waits on its
	// channel (since Go 1.23), so it is an extra figure.
	t0 := time.Now()
	for range n {
		stopped := time.AfterFunc(time.Hour, func() {}).Stop()
		check(stopped, "not stopped")
	}
	took := time.Since(t0)
	t1 := time.Now()
	for range n {
		stopped := time.NewTimer(time.Hour).Stop()
		check(stopped, "not stopped")
	}
	lazy := time.Since(t1)
	return a.report(n).
		time(took, n).
		set("newtimer_ns_per_op", float64(lazy)/float64(n)).
		set("via", "AfterFunc + Stop; newtimer_*: NewTimer + Stop (never armed)")
}

func sleepAccuracy(a *args) *report {
	n := a.n(1000)
	lateness := make([]time.Duration, 0, n)
	t0 := time.Now()
	for range n {
		t0 := time.Now()
		time.Sleep(time.Millisecond)
		lateness = append(lateness, late(t0, time.Millisecond))
	}
	return a.report(n).secs(time.Since(t0)).lateness(lateness)
}

// ticker sleeps 1 ms at a time until over, then sends its lateness samples.
func ticker(over *atomic.Bool, mu *sync.Mutex, lateness *[]time.Duration, done chan<- struct{}) {
	for !over.Load() {
		t0 := time.Now()
		time.Sleep(time.Millisecond)
		d := late(t0, time.Millisecond)
		mu.Lock()
		*lateness = append(*lateness, d)
		mu.Unlock()
	}
	close(done)
}

// ---- fairness

func preemptLatency(a *args) *report {
	window := a.secs("secs", 3)
	hogs := a.int("hogs", 2*a.procs)
	var over atomic.Bool
	var chunks atomic.Int64
	var mu sync.Mutex
	var lateness []time.Duration
	done := make(chan struct{})
	go ticker(&over, &mu, &lateness, done)
	time.Sleep(100 * time.Millisecond)
	mu.Lock()
	before := len(lateness)
	lateness = nil
	mu.Unlock()
	t0 := time.Now()
	for range hogs {
		go func() {
			for !over.Load() { // the flag is only read, about every 100 µs
				spin(25_000)
				chunks.Add(1)
			}
		}()
	}
	time.Sleep(window)
	over.Store(true)
	took := time.Since(t0)
	hung := false
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		hung = true
	}
	mu.Lock()
	wakeups := len(lateness)
	if hung {
		lateness = append(lateness, took)
	}
	worst := percentiles(lateness)(1)
	r := a.report(hogs).
		secs(took).
		set("wakeups", wakeups).
		set("wakeups_before_hogs", before).
		set("hog_chunks", chunks.Load()).
		lateness(lateness).
		set("starved", worst >= min(time.Second, window/2))
	if hung {
		r.set("hung", true)
	}
	return r
}

func forensics(a *args) *report {
	n := a.n(1000)
	mode := a.text("mode", "busy")
	const busy = 10 * time.Millisecond
	iters := calibrate(busy)
	finished := make([]time.Duration, n)
	var all sync.WaitGroup
	t0 := time.Now()
	for i := range n {
		all.Go(func() {
			switch mode {
			case "busy":
				spin(iters)
			case "yield":
				for range 100 {
					spin(iters / 100)
					runtime.Gosched()
				}
			case "sleep":
				time.Sleep(busy)
			default:
				check(false, "mode is busy, yield or sleep")
			}
			finished[i] = time.Since(t0)
		})
	}
	all.Wait()
	took := time.Since(t0)
	p := percentiles(finished)
	ms := func(q float64) float64 { return float64(p(q)) / 1e6 }
	return a.report(n).
		secs(took).
		set("mode", mode).
		set("done_p50_ms", ms(0.50)).
		set("done_p90_ms", ms(0.90)).
		set("done_p99_ms", ms(0.99)).
		set("done_max_ms", ms(1))
}

func blocking(a *args) *report {
	n := a.n(200)
	block := syscall.NsecToTimespec(int64(a.int("ms", 50)) * int64(time.Millisecond))
	var over atomic.Bool
	var mu sync.Mutex
	var lateness []time.Duration
	done := make(chan struct{})
	go ticker(&over, &mu, &lateness, done)
	time.Sleep(20 * time.Millisecond)
	var all sync.WaitGroup
	t0 := time.Now()
	for range n {
		all.Go(func() {
			left := block
			for syscall.Nanosleep(&left, &left) == syscall.EINTR { // by the runtime's preemption signal
			}
		})
	}
	all.Wait()
	took := time.Since(t0)
	over.Store(true)
	<-done
	return a.report(n).
		secs(took).
		set("ticks", len(lateness)).
		lateness(lateness).
		set("via", "syscall.Nanosleep")
}

// ---- resources

func idle(a *args) *report {
	n := a.n(10_000)
	ch := make(chan struct{})
	for range n {
		go func() { <-ch }()
	}
	time.Sleep(200 * time.Millisecond) // let the tasks settle
	t0, before := time.Now(), usageNow()
	time.Sleep(a.secs("secs", 3))
	took, after := time.Since(t0), usageNow()
	close(ch)
	return a.report(n).
		secs(took).
		set("cpu_ms", float64(after.cpu-before.cpu)/1e6).
		set("ctx_voluntary", after.voluntary-before.voluntary).
		set("ctx_involuntary", after.involuntary-before.involuntary)
}

func syscallOverhead(a *args) *report {
	n := a.n(2_000_000)
	want := uintptr(syscall.Getpid())
	t0 := time.Now()
	for range n {
		pid, _, _ := syscall.Syscall(syscall.SYS_GETPID, 0, 0, 0)
		check(pid == want, "pid %d", pid)
	}
	took := time.Since(t0)
	t1 := time.Now()
	for range n {
		pid, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
		check(pid == want, "pid %d", pid)
	}
	raw := time.Since(t1)
	return a.report(n).
		time(took, n).
		set("raw_ns_per_op", float64(raw)/float64(n)).
		set("via", "syscall.Syscall; raw_*: RawSyscall")
}
