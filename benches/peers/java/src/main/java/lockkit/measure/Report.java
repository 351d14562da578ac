package lockkit.measure;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The one line of JSON. */
final class Report {
    private Report() {}

    static String json(Options options, String version, List<Task> tasks, long violations, long errors) {
        long[] sorted = tasks.stream().flatMapToLong(task -> Arrays.stream(task.latencies())).sorted().toArray();
        return String.format(
                Locale.ROOT,
                "{\"peer\":\"%s\",\"version\":\"%s\",\"workload\":\"%s\",\"clients\":%d,\"tasks\":%d,\"seconds\":%d,\"ops\":%d,"
                        + "\"ops_s\":%.1f,\"mean_us\":%.1f,\"p50_us\":%.1f,\"p95_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
                        + "\"violations\":%d,\"errors\":%d,\"jain\":%.4f}",
                options.peer(), version, options.workload(), options.clients(), options.tasks(), options.seconds(), sorted.length,
                (double) sorted.length / options.seconds(),
                Arrays.stream(sorted).average().orElse(0) / 1e3, micros(sorted, 0.50), micros(sorted, 0.95), micros(sorted, 0.99), micros(sorted, 1),
                violations, errors, jain(tasks));
    }

    private static double micros(long[] sorted, double quantile) {
        if (sorted.length == 0) {
            return 0;
        }
        int rank = (int) Math.ceil(quantile * sorted.length) - 1;
        return sorted[Math.max(rank, 0)] / 1e3;
    }

    private static double jain(List<Task> tasks) {
        double sum = tasks.stream().mapToDouble(Task::ops).sum();
        double squares = tasks.stream().mapToDouble(task -> (double) task.ops() * task.ops()).sum();
        return squares == 0 ? 0 : sum * sum / (tasks.size() * squares);
    }
}
