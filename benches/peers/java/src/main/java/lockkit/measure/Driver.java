package lockkit.measure;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs one workload on one peer and prints one line of JSON; SPEC.md says what is counted. */
public final class Driver {
    private static final long WARM_UP_NANOS = TimeUnit.SECONDS.toNanos(1);
    /** A task that has not come back this long after the deadline is stuck: longer than Redisson's 30 s watchdog. */
    private static final long DRAIN_NANOS = TimeUnit.SECONDS.toNanos(40);

    private Driver() {}

    public static void main(String[] args) throws Exception {
        try {
            System.out.println(run(Options.parse(args)));
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        }
        System.exit(0);
    }

    private static String run(Options options) throws Exception {
        List<Client> clients = new ArrayList<>();
        try {
            if (options.workload().equals("tryheld")) {
                var holder = Peers.open(options.peer(), options.server());
                clients.add(holder);
                holder.named(options.key()).lock();
            }
            List<NamedLock> locks = new ArrayList<>();
            for (int c = 0; c < options.clients(); c++) {
                var client = Peers.open(options.peer(), options.server());
                clients.add(client);
                for (int t = 0; t < options.tasks(); t++) {
                    boolean own = options.workload().equals("distinct");
                    locks.add(client.named(own ? options.key() + "-" + c + "-" + t : options.key()));
                }
            }
            return measure(options, locks);
        } finally {
            clients.parallelStream().forEach(Driver::close);
        }
    }

    private static String measure(Options options, List<NamedLock> locks) throws Exception {
        long begin = System.nanoTime() + WARM_UP_NANOS;
        long end = begin + TimeUnit.SECONDS.toNanos(options.seconds());
        var witness = new Witness();
        List<Task> tasks = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (NamedLock lock : locks) {
            var task = new Task(lock, options.workload(), witness, begin, end);
            var thread = new Thread(task);
            thread.setDaemon(true);
            tasks.add(task);
            threads.add(thread);
        }
        threads.forEach(Thread::start);
        markAt(begin, "begin");
        markAt(end, "end");

        long stuck = 0;
        for (Thread thread : threads) {
            thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(end + DRAIN_NANOS - System.nanoTime())));
            stuck += thread.isAlive() ? 1 : 0;
        }
        if (stuck > 0) {
            System.err.println(stuck + " tasks did not come back from their last operation");
        }
        boolean witnessed = options.workload().equals("contend") || options.workload().equals("fair");
        long entries = tasks.stream().mapToLong(Task::entries).sum();
        long errors = stuck + tasks.stream().mapToLong(Task::errors).sum();
        return Report.json(options, Peers.version(options.peer()), tasks, witnessed ? witness.violations(entries) : 0, errors);
    }

    /** Tells whoever reads the server's counters, on stderr, when the counted window opens and closes. */
    private static void markAt(long nanos, String mark) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(nanos - System.nanoTime());
        System.err.println("measure: " + mark);
    }

    private static void close(Client client) {
        try {
            client.close();
        } catch (Exception e) {
            e.printStackTrace();
        }
    }
}
