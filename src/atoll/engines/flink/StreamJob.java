import java.io.File;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingProcessingTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * A streaming job from a JSON file of operators: sources at a fixed rate, filters, joins with the
 * latest row of the other side, windows, top-n and sinks. Its argument is the file. Each operator is
 * a task of its own with one thread.
 */
public class StreamJob {
    /** Adds to System.nanoTime() what makes it a time since 1970. There is one task manager. */
    private static final long EPOCH_NS =
            System.currentTimeMillis() * 1_000_000 - System.nanoTime();

    static long nowNs() {
        return System.nanoTime() + EPOCH_NS;
    }

    /**
     * A row. It is born at its source; the result of a window or of a top-n is born when the period
     * ends for which it stands.
     */
    public static class Row {
        public long key;
        public long value;
        public long bornNs;

        public Row() {}

        Row(long key, long value, long bornNs) {
            this.key = key;
            this.value = value;
            this.bornNs = bornNs;
        }
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode plan = new ObjectMapper().readTree(new File(arguments[0]));
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setParallelism(1);
        environment.disableOperatorChaining();
        Map<String, DataStream<Row>> streams = new HashMap<>();
        Map<String, JsonNode> waiting = new TreeMap<>();
        for (JsonNode operator : plan.get("operators")) {
            waiting.put(operator.get("name").asText(), operator);
        }
        while (!waiting.isEmpty()) {
            boolean added = false;
            for (JsonNode operator : new ArrayList<>(waiting.values())) {
                List<DataStream<Row>> inputs = new ArrayList<>();
                for (JsonNode from : operator.path("from")) {
                    inputs.add(streams.get(from.asText()));
                }
                if (!inputs.contains(null)) {
                    String name = operator.get("name").asText();
                    waiting.remove(name);
                    streams.put(name, add(environment, operator, name, inputs));
                    added = true;
                }
            }
            if (!added) {
                throw new IllegalArgumentException("no source, or a cycle: " + waiting.keySet());
            }
        }
        environment.execute("shared plan");
    }

    /** Adds the operator. Returns null for a sink. */
    private static DataStream<Row> add(
            StreamExecutionEnvironment environment,
            JsonNode operator,
            String name,
            List<DataStream<Row>> inputs) {
        String kind = operator.get("kind").asText();
        if (kind.equals("source")) {
            return environment.fromSource(
                    new DataGeneratorSource<>(
                            new Draw(operator.get("keys").asLong()),
                            Long.MAX_VALUE,
                            RateLimiterStrategy.perSecond(operator.get("per_s").asDouble()),
                            TypeInformation.of(Row.class)),
                    WatermarkStrategy.noWatermarks(),
                    name);
        }
        DataStream<Row> input = inputs.get(0);
        if (kind.equals("join")) {
            return input.connect(inputs.get(1))
                    .keyBy(row -> row.key, row -> row.key)
                    .process(new LatestJoin())
                    .name(name);
        }
        for (DataStream<Row> other : inputs.subList(1, inputs.size())) {
            input = input.union(other);
        }
        switch (kind) {
            case "filter": {
                int low = operator.get("percent").get(0).asInt();
                int high = operator.get("percent").get(1).asInt();
                return input.filter(row -> low <= row.value % 100 && row.value % 100 < high)
                        .name(name);
            }
            case "window": {
                long keys = operator.get("keys").asLong();
                Duration length = Duration.ofMillis(operator.get("ms").asLong());
                return input.keyBy(row -> row.key % keys)
                        .window(TumblingProcessingTimeWindows.of(length))
                        .reduce(
                                (left, right) ->
                                        new Row(left.key, left.value + right.value, 0),
                                new Reborn())
                        .name(name);
            }
            case "topn":
                return input.keyBy(row -> 0L)
                        .process(new TopN(operator.get("n").asInt(), operator.get("ms").asLong()))
                        .name(name);
            case "sink":
                input.sinkTo(new CountingSink()).name(name);
                return null;
            default:
                throw new IllegalArgumentException(name + ": unknown kind " + kind);
        }
    }

    /** The row of each number; the same in every run, but for its birth. */
    static class Draw implements GeneratorFunction<Long, Row> {
        private final long keys;

        Draw(long keys) {
            this.keys = keys;
        }

        @Override
        public Row map(Long number) {
            long mixed = number * 0x9E3779B97F4A7C15L; // Fibonacci hashing: the high bits are mixed
            return new Row((mixed >>> 20) % keys, mixed >>> 40, nowNs());
        }
    }

    /** Gives the sum of a window with the window's end as its birth. */
    static class Reborn extends ProcessWindowFunction<Row, Row, Long, TimeWindow> {
        @Override
        public void process(Long key, Context context, Iterable<Row> sums, Collector<Row> out) {
            Row sum = sums.iterator().next();
            out.collect(new Row(key, sum.value, context.window().getEnd() * 1_000_000));
        }
    }

    /** Gives each row of the left side with the latest row of its key on the right, if any. */
    static class LatestJoin extends KeyedCoProcessFunction<Long, Row, Row, Row> {
        private transient ValueState<Row> latest;

        @Override
        public void open(OpenContext context) {
            latest = getRuntimeContext().getState(new ValueStateDescriptor<>("latest", Row.class));
        }

        @Override
        public void processElement1(Row row, Context context, Collector<Row> out)
                throws Exception {
            Row other = latest.value();
            long value = other == null ? row.value : row.value + other.value;
            out.collect(new Row(row.key, value, row.bornNs));
        }

        @Override
        public void processElement2(Row row, Context context, Collector<Row> out)
                throws Exception {
            latest.update(row);
        }
    }

    /** Gives the n rows with the greatest values of each period at its end. */
    static class TopN extends KeyedProcessFunction<Long, Row, Row> {
        private final int n;
        private final long periodMs;
        private transient ListState<Row> rows;

        TopN(int n, long periodMs) {
            this.n = n;
            this.periodMs = periodMs;
        }

        @Override
        public void open(OpenContext context) {
            rows = getRuntimeContext().getListState(new ListStateDescriptor<>("rows", Row.class));
        }

        @Override
        public void processElement(Row row, Context context, Collector<Row> out)
                throws Exception {
            rows.add(row);
            long nowMs = context.timerService().currentProcessingTime();
            context.timerService()
                    .registerProcessingTimeTimer((nowMs / periodMs + 1) * periodMs);
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Row> out)
                throws Exception {
            List<Row> all = new ArrayList<>();
            rows.get().forEach(all::add);
            rows.clear();
            all.sort(Comparator.comparingLong((Row row) -> row.value).reversed());
            for (Row row : all.subList(0, Math.min(n, all.size()))) {
                out.collect(new Row(row.key, row.value, timestamp * 1_000_000));
            }
        }
    }

    /**
     * Counts rows by the second of their arrival, and their ages by size. Two gauges show both, as
     * 'number:count' separated by spaces: `perSecond` with the second of the epoch, `ages` with the
     * bucket b of ages up to 1.05^b microseconds, since the start.
     */
    static class CountingSink implements Sink<Row> {
        @Override
        public SinkWriter<Row> createWriter(WriterInitContext context) {
            Tally perSecond = new Tally(86_400);
            Tally ages = new Tally(Integer.MAX_VALUE);
            context.metricGroup().gauge("perSecond", perSecond);
            context.metricGroup().gauge("ages", ages);
            return new SinkWriter<Row>() {
                @Override
                public void write(Row row, Context where) {
                    perSecond.add(System.currentTimeMillis() / 1000);
                    double us = Math.max(1.0, (nowNs() - row.bornNs) / 1e3);
                    ages.add((long) Math.ceil(Math.log(us) / Math.log(1.05)));
                }

                @Override
                public void flush(boolean end) {}

                @Override
                public void close() {}
            };
        }
    }

    /** Counts by number, of the greatest `most` numbers. */
    static class Tally implements Gauge<String>, Serializable {
        private final int most;
        private final TreeMap<Long, Long> counts = new TreeMap<>();

        Tally(int most) {
            this.most = most;
        }

        synchronized void add(long number) {
            counts.merge(number, 1L, Long::sum);
            if (counts.size() > most) {
                counts.pollFirstEntry();
            }
        }

        @Override
        public synchronized String getValue() {
            StringBuilder text = new StringBuilder();
            counts.forEach((number, count) -> text.append(number + ":" + count + " "));
            return text.toString().trim();
        }
    }
}
