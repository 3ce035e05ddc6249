// What was reported about Go's scheduler, tried on Go: `reports CASE`. A case ends well if it prints
// `ok`; what it measured comes before that.
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var cases = map[string]func() bool{
	"loop":          endlessLoop,
	"spawn-storm":   spawnStorm,
	"blocked":       blocked,
	"idle-threads":  idleThreads,
	"many-blocked":  manyBlocked,
	"endless-sleep": endlessSleep,
	"greedy-lock":   greedyLock,
}

func main() {
	run, ok := cases[os.Args[1]]
	if !ok {
		fmt.Println("no case", os.Args[1])
		os.Exit(2)
	}
	if !run() {
		fmt.Println("FAILS")
		os.Exit(1)
	}
	fmt.Println("ok")
}

func endlessLoop() bool {
	runtime.GOMAXPROCS(1)
	var over atomic.Bool
	done := make(chan bool)
	go func() {
		for i := 0; !over.Load(); i++ {
		}
		done <- true
	}()
	time.Sleep(100 * time.Millisecond)
	go over.Store(true)
	return <-done
}

// Goroutines that begin each other for ever, and one that waits in the queue behind them.
func spawnStorm() bool {
	runtime.GOMAXPROCS(1)
	var over, ran atomic.Bool
	var passes atomic.Int64
	var again func()
	again = func() {
		passes.Add(1)
		if !over.Load() {
			go again()
		}
	}
	for i := 0; i < 4; i++ {
		go again()
	}
	go func() { ran.Store(true) }()
	for begin := time.Now(); time.Since(begin) < 5*time.Second && !ran.Load(); {
		runtime.Gosched()
	}
	fmt.Println("passes", passes.Load())
	over.Store(true)
	return ran.Load()
}

func blocked() bool {
	runtime.GOMAXPROCS(2)
	var ticks atomic.Int64
	go func() {
		for {
			time.Sleep(time.Millisecond)
			ticks.Add(1)
		}
	}()
	for i := 0; i < 2; i++ {
		go syscall.Nanosleep(&syscall.Timespec{Sec: 3}, nil)
	}
	time.Sleep(500 * time.Millisecond)
	before := ticks.Load()
	time.Sleep(2 * time.Second)
	meanwhile := ticks.Load() - before
	fmt.Println("ticks", meanwhile)
	return meanwhile > 100
}

func threads() int {
	entries, _ := os.ReadDir("/proc/self/task")
	return len(entries)
}

// All block in a pipe, and end; how many threads are there half a minute later?
func block(count int) (peak int) {
	var pipe [2]int
	syscall.Pipe(pipe[:])
	var wait sync.WaitGroup
	for i := 0; i < count; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var b [1]byte
			syscall.Read(pipe[0], b[:])
		}()
	}
	for end := time.Now().Add(20 * time.Second); threads() < count && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	peak = threads()
	syscall.Write(pipe[1], make([]byte, count))
	wait.Wait()
	return peak
}

func idleThreads() bool {
	peak := block(200)
	time.Sleep(30 * time.Second)
	left := threads()
	fmt.Println("threads at the peak", peak, "and 30 s later", left)
	return left < 50
}

func manyBlocked() bool {
	fmt.Println("threads at the peak", block(12000))
	return true
}

func endlessSleep() bool {
	done := make(chan bool, 1)
	go func() {
		time.Sleep(math.MaxInt64)
		done <- true
	}()
	select {
	case <-done:
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

// Who holds a lock nearly all the time, and one that wants it ten times.
func greedyLock() bool {
	var lock sync.Mutex
	var over atomic.Bool
	go func() {
		for !over.Load() {
			lock.Lock()
			time.Sleep(100 * time.Microsecond)
			lock.Unlock()
		}
	}()
	begin := time.Now()
	for i := 0; i < 10; i++ {
		time.Sleep(100 * time.Microsecond)
		lock.Lock()
		lock.Unlock()
	}
	over.Store(true)
	fmt.Println("ms", time.Since(begin).Milliseconds())
	return time.Since(begin) < time.Second
}
