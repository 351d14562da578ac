// lockpeers runs the workloads of ../SPEC.md on Go's lock libraries and prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// client is one independent process-like user: its own connections and sessions.
type client interface {
	// locker returns one task's handle on key.
	locker(key string) (locker, error)
	close()
}

type locker interface {
	lock() error
	unlock() error
}

// trier is implemented by the peers that have a non-waiting lock call.
type trier interface {
	tryLock() (bool, error)
}

// extender is implemented by the peers whose lease the user must renew by hand.
type extender interface {
	extend() error
}

type peer struct {
	module string
	open   func(server string, ttl time.Duration) (client, error)
}

var peers = map[string]peer{
	"redsync":          {"github.com/go-redsync/redsync/v4", openRedsync},
	"bsm-redislock":    {"github.com/bsm/redislock", openRedislock},
	"go-floor":         {"github.com/redis/go-redis/v9", openFloor},
	"etcd-mutex":       {"go.etcd.io/etcd/client/v3", openEtcdMutex},
	"etcd-server-lock": {"go.etcd.io/etcd/client/v3", openEtcdServerLock},
	"go-zk":            {"github.com/go-zookeeper/zk", openZK},
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "?"
}

func main() {
	var r run
	flag.StringVar(&r.peer, "peer", "", "library")
	flag.StringVar(&r.server, "server", "", "host:port[,host:port...]")
	flag.StringVar(&r.workload, "workload", "pair", "pair|contend|tryheld|distinct, or hold|wait for the take-over test")
	flag.IntVar(&r.clients, "clients", 1, "independent client objects")
	flag.IntVar(&r.tasks, "tasks", 1, "goroutines per client")
	flag.IntVar(&r.seconds, "seconds", 5, "counted seconds, after 1 s of warm-up")
	flag.StringVar(&r.key, "key", "bench", "lock name")
	ttl := flag.Int("ttl", 10, "lease or session seconds")
	flag.Parse()

	p, ok := peers[r.peer]
	if !ok {
		fail(fmt.Errorf("unknown peer %q", r.peer))
	}
	r.ttl = time.Duration(*ttl) * time.Second
	r.open = func() (client, error) { return p.open(r.server, r.ttl) }

	var err error
	switch r.workload {
	case "hold":
		err = r.hold()
	case "wait":
		err = r.wait()
	default:
		var res *result
		if res, err = r.measure(); err == nil {
			res.Version = version(p.module)
			err = json.NewEncoder(os.Stdout).Encode(res)
		}
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "lockpeers:", err)
	os.Exit(1)
}
