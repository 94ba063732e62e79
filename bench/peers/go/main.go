// The kernel's benchmark rows, done the way Go does them: goroutines and
// context.Context. Protocol and caveats: bench/peers/README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const million = 1_000_000

type row struct {
	unit  string
	round func() float64
}

var rows = map[string]row{
	"kernel.spawn_end_seq":       {"ns", spawnEndSeq},
	"kernel.spawn_end_1m":        {"ns", spawnEndMillion},
	"kernel.region_open_close":   {"ns", regionOpenClose},
	"kernel.task_bytes":          {"bytes", taskBytes},
	"kernel.cancel_fan_1m":       {"ns", cancelFan},
	"kernel.cancel_chain_1m":     {"ns", cancelChain},
	"kernel.cancelled_check":     {"ns", cancelledCheck},
	"kernel.channel_msg":         {"ns", channelMessage},
	"kernel.timer_arm_cancel_1m": {"ns", timerArmCancel},
	"future.then_chain_1m":       {"ns", thenChain},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: peer <row> <rounds>")
		os.Exit(2)
	}
	name := os.Args[1]
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintf(os.Stderr, "rounds must be a number: %v\n", err)
		os.Exit(2)
	}
	r, known := rows[name]
	if !known {
		fmt.Printf("skip %s no such row in this peer\n", name)
		return
	}
	for range rounds {
		runtime.GC()
		fmt.Printf("row %s %s %.3f\n", name, r.unit, r.round())
	}
}

// The process's clock, so that the collector's threads are counted and the
// machine's other work is not.
func cpuNanoseconds() int64 {
	const clockProcessCPUTime = 2
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPUTime, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func cpuPer(n int, work func()) float64 {
	start := cpuNanoseconds()
	work()
	return float64(cpuNanoseconds()-start) / float64(n)
}

func residentBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		panic(err)
	}
	return kib * 1024
}

func spawnEndSeq() float64 {
	var ended sync.WaitGroup
	return cpuPer(million, func() {
		for range million {
			ended.Add(1)
			go ended.Done()
			ended.Wait()
		}
	})
}

// The scheduler preempts the spawner about every 10 ms, so not quite all of the
// million are alive at once. Holding them back would need a second wait in each.
func spawnEndMillion() float64 {
	var ended sync.WaitGroup
	return cpuPer(million, func() {
		for range million {
			ended.Add(1)
			go ended.Done()
		}
		ended.Wait()
	})
}

func regionOpenClose() float64 {
	parent, cancelParent := context.WithCancel(context.Background())
	defer cancelParent()
	return cpuPer(million, func() {
		for range million {
			_, cancel := context.WithCancel(parent)
			cancel()
		}
	})
}

// Starts n goroutines and returns when each of them waits for ctx to be cancelled.
func park(ctx context.Context, n int, ended *sync.WaitGroup) {
	var parked atomic.Int64
	ended.Add(n)
	for range n {
		go func() {
			cancelled := ctx.Done()
			parked.Add(1)
			<-cancelled
			ended.Done()
		}()
	}
	for parked.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
}

func taskBytes() float64 {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	before := residentBytes()
	park(ctx, million, &ended)
	bytes := float64(residentBytes()-before) / million
	cancel()
	ended.Wait()
	return bytes
}

func cancelFan() float64 {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	park(ctx, million, &ended)
	return cpuPer(million, func() {
		cancel()
		ended.Wait()
	})
}

// A cancel func must be kept for each level: a scope nobody can close is not a scope.
func cancelChain() float64 {
	top, cancelTop := context.WithCancel(context.Background())
	bottom := top
	cancels := make([]context.CancelFunc, million)
	for i := range cancels {
		bottom, cancels[i] = context.WithCancel(bottom)
	}
	ns := cpuPer(million, func() {
		cancelTop()
		<-bottom.Done()
	})
	runtime.KeepAlive(cancels)
	return ns
}

var seenCancelled int

func cancelledCheck() float64 {
	const checks = 50 * million
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return cpuPer(checks, func() {
		for range checks {
			if ctx.Err() != nil {
				seenCancelled++
			}
		}
	})
}

func channelMessage() float64 {
	ping, pong := make(chan int, 1), make(chan int, 1)
	go func() {
		for v := range ping {
			pong <- v + 1
		}
	}()
	ns := cpuPer(2*million, func() {
		for i := range million {
			ping <- i
			<-pong
		}
	})
	close(ping)
	return ns
}

func timerArmCancel() float64 {
	due := make([]time.Duration, million)
	x := uint64(88172645463325252)
	for i := range due {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		due[i] = time.Duration(100_000+x%1_000_000) * time.Millisecond
	}
	timers := make([]*time.Timer, million)
	never := func() { panic("a timer fired that was to be cancelled") }
	return cpuPer(million, func() {
		for i, d := range due {
			timers[i] = time.AfterFunc(d, never)
		}
		for _, t := range timers {
			t.Stop()
		}
	})
}

// A goroutine a link, each with a channel of one.
func thenChain() float64 {
	start := cpuNanoseconds()
	first := make(chan int, 1)
	last := first
	for range million {
		next := make(chan int, 1)
		go func(in, out chan int) { out <- <-in + 1 }(last, next)
		last = next
	}
	first <- 0
	if <-last != million {
		panic("a link is missing")
	}
	return float64(cpuNanoseconds()-start) / million
}
