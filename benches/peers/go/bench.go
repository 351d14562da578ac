package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type run struct {
	peer, server, workload, key string
	clients, tasks, seconds     int
	ttl                         time.Duration
	open                        func() (client, error)
}

type result struct {
	Peer       string  `json:"peer"`
	Version    string  `json:"version"`
	Workload   string  `json:"workload"`
	Clients    int     `json:"clients"`
	Tasks      int     `json:"tasks"`
	Seconds    int     `json:"seconds"`
	Ops        int     `json:"ops"`
	OpsS       float64 `json:"ops_s"`
	Mean       float64 `json:"mean_us"`
	P50        float64 `json:"p50_us"`
	P95        float64 `json:"p95_us"`
	P99        float64 `json:"p99_us"`
	Max        float64 `json:"max_us"`
	Violations int64   `json:"violations"`
	Errors     int64   `json:"errors"`
	Jain       float64 `json:"jain"`
}

// witness is what the lock protects: count is plain memory, inside tells who breaks the rule.
type witness struct {
	inside, violations atomic.Int64
	count              int64
}

func (w *witness) visit() {
	if w.inside.Add(1) != 1 {
		w.violations.Add(1)
	}
	w.count++
	w.inside.Add(-1)
}

// task is one goroutine's record.
type task struct {
	ops    int
	visits int64
	lat    []time.Duration // of the operations that ended in the counted window
	max    time.Duration   // also of the one in flight when the window closed
}

func (r *run) measure() (*result, error) {
	names := r.names()
	lockers := make([]locker, 0, len(names))
	for c := range r.clients {
		cl, err := r.open()
		if err != nil {
			return nil, err
		}
		defer cl.close()
		for t := range r.tasks {
			l, err := cl.locker(names[c*r.tasks+t])
			if err != nil {
				return nil, err
			}
			lockers = append(lockers, l)
		}
	}
	if r.workload == "tryheld" {
		holder, err := r.open()
		if err != nil {
			return nil, err
		}
		defer holder.close()
		h, err := holder.locker(r.key)
		if err != nil {
			return nil, err
		}
		if err := h.lock(); err != nil {
			return nil, err
		}
		defer h.unlock()
		if _, ok := lockers[0].(trier); !ok {
			return nil, errors.New("the library has no non-waiting lock call")
		}
	}

	var w witness
	var errs atomic.Int64
	tasks := make([]task, len(lockers))
	begin := time.Now().Add(time.Second)
	end := begin.Add(time.Duration(r.seconds) * time.Second)
	var wg sync.WaitGroup
	for i, l := range lockers {
		wg.Go(func() {
			t := &tasks[i]
			for {
				start := time.Now()
				if !start.Before(end) {
					return
				}
				took, err := r.operation(l, &w, t)
				if err != nil {
					if errs.Add(1) <= 3 {
						fmt.Fprintln(os.Stderr, r.peer, err)
					}
					time.Sleep(time.Millisecond)
					continue
				}
				if done := start.Add(took); done.After(begin) {
					t.max = max(t.max, took)
					if done.Before(end) {
						t.ops++
						t.lat = append(t.lat, took)
					}
				}
			}
		})
	}
	time.Sleep(time.Until(begin))
	fmt.Fprintln(os.Stderr, "measure: begin") // whoever runs this reads the server's counters here
	time.Sleep(time.Until(end))
	fmt.Fprintln(os.Stderr, "measure: end")
	wg.Wait()
	return r.report(tasks, &w, errs.Load()), nil
}

func (r *run) names() []string {
	names := make([]string, r.clients*r.tasks)
	for i := range names {
		names[i] = r.key
		if r.workload == "distinct" {
			names[i] = fmt.Sprintf("%s-%d", r.key, i)
		}
	}
	return names
}

// operation does one operation and returns the latency that the workload asks for.
func (r *run) operation(l locker, w *witness, t *task) (time.Duration, error) {
	start := time.Now()
	if r.workload == "tryheld" {
		got, err := l.(trier).tryLock()
		if got {
			err = errors.New("try-lock got a lock that is held")
		}
		return time.Since(start), err
	}
	if err := l.lock(); err != nil {
		return 0, fmt.Errorf("lock: %w", err)
	}
	took := time.Since(start)
	if r.workload == "contend" {
		w.visit()
		t.visits++
	}
	if err := l.unlock(); err != nil {
		return 0, fmt.Errorf("unlock: %w", err)
	}
	if r.workload != "contend" {
		took = time.Since(start)
	}
	return took, nil
}

func (r *run) report(tasks []task, w *witness, errs int64) *result {
	var lat []time.Duration
	var sum, squares float64
	var visits int64
	var longest, total time.Duration
	for i := range tasks {
		n := float64(tasks[i].ops)
		sum, squares = sum+n, squares+n*n
		visits += tasks[i].visits
		longest = max(longest, tasks[i].max)
		lat = append(lat, tasks[i].lat...)
	}
	slices.Sort(lat)
	for _, took := range lat {
		total += took
	}
	at := func(q float64) float64 {
		if len(lat) == 0 {
			return 0
		}
		return us(lat[min(int(q*float64(len(lat))), len(lat)-1)])
	}
	jain := 0.0
	if squares > 0 {
		jain = sum * sum / (squares * float64(len(tasks)))
	}
	lost := visits - w.count // increments that overwrote each other
	return &result{
		Peer: r.peer, Workload: r.workload, Clients: r.clients, Tasks: r.tasks, Seconds: r.seconds,
		Ops: int(sum), OpsS: sum / float64(r.seconds), Mean: us(total) / max(sum, 1), P50: at(.50), P95: at(.95), P99: at(.99), Max: us(longest),
		Violations: max(w.violations.Load(), lost), Errors: errs, Jain: jain,
	}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }
