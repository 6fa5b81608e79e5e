package org.tampu.bench;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.util.LogbackMDCAdapter;
import ch.qos.logback.core.Appender;
import ch.qos.logback.core.FileAppender;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.IntConsumer;
import org.tampu.log.Level;
import org.tampu.log.LogSettings;
import org.tampu.log.Logger;
import org.tampu.log.TampuHandler;
import org.tampu.logback.TampuAppender;
import org.tampu.slf4j.TampuLoggerFactory;

/**
 * Measures what a log call costs: Tampu by each of its ways, and Logback's own file appender, by turns in one run.
 *
 * <p>A round has as many calls as a ring holds, and the next begins when the node has read them: so what is measured is
 * the call and no wait for room. The median and the best of all rounds are shown.
 */
public final class BenchLog {
    private static final int CALLS = 4000;
    private static final int ROUNDS = 60;
    private static final int WARM = 20;

    private BenchLog() {}

    public static void main(String[] arguments) throws Exception {
        System.setProperty("tampu.source", "bench-java");
        Path file = Files.createTempFile("tampu-bench", ".log");
        Logger tampu = Logger.open(LogSettings.fromEnvironment("bench-java"));
        Map<String, IntConsumer> ways = new LinkedHashMap<>();
        ways.put("tampu: Logger, 2 arguments", i -> tampu.info("antenna {} at az {}", "DV01", 269.9 + i));
        ways.put("tampu: Logger, text only", i -> tampu.info("antenna on source"));
        var slf4j = new TampuLoggerFactory().getLogger("mount");
        ways.put("tampu: slf4j provider, 2 arguments", i -> slf4j.info("antenna {} at az {}", "DV01", 269.9 + i));
        var jul = java.util.logging.Logger.getLogger("mount");
        jul.setUseParentHandlers(false);
        jul.addHandler(new TampuHandler(LogSettings.fromEnvironment("bench-java"), Level.ERROR));
        ways.put("tampu: java.util.logging, 2 arguments",
                i -> jul.log(java.util.logging.Level.INFO, "antenna {0} at az {1}", new Object[] {"DV01", 269.9 + i}));
        TampuAppender appender = new TampuAppender();
        appender.setSource("bench-java");
        var ours = logback(appender);
        ways.put("tampu: Logback appender, 2 arguments", i -> ours.info("antenna {} at az {}", "DV01", 269.9 + i));
        var flushed = logback(file(file, true));
        ways.put("peer: Logback file appender, 2 arguments", i -> flushed.info("antenna {} at az {}", "DV01", 269.9 + i));
        var buffered = logback(file(file, false));
        ways.put("peer: Logback file appender, not flushed", i -> buffered.info("antenna {} at az {}", "DV01", 269.9 + i));
        Map<String, double[]> costs = new LinkedHashMap<>();
        ways.keySet().forEach(name -> costs.put(name, new double[ROUNDS]));
        for (int round = -WARM; round < ROUNDS; round++) {
            for (var way : ways.entrySet()) {
                if (!tampu.flush(Duration.ofSeconds(30))) {
                    throw new IllegalStateException("nobody reads the rings: start a hub");
                }
                long begun = System.nanoTime();
                for (int call = 0; call < CALLS; call++) {
                    way.getValue().accept(call);
                }
                double cost = (System.nanoTime() - begun) / (double) CALLS;
                if (round >= 0) {
                    costs.get(way.getKey())[round] = cost;
                }
            }
        }
        double peer = median(costs.get("peer: Logback file appender, 2 arguments"));
        costs.forEach((name, each) -> System.out.printf("%-42s median %7.0f ns  best %7.0f ns  1/%.1f of Logback's file appender%n",
                name, median(each), Arrays.stream(each).min().orElse(0), peer / median(each)));
        System.out.println("lost " + tampu.lost() + "; load " + Files.readString(Path.of("/proc/loadavg")).strip());
        long lines;
        try (var all = Files.lines(file)) {
            lines = all.count();
        }
        // What was not written was not measured.
        if (lines < 2L * CALLS * (ROUNDS + WARM) - 1000 || tampu.lost() != 0) {
            throw new IllegalStateException("Logback wrote " + lines + " lines, and Tampu lost " + tampu.lost() + " records");
        }
        Files.delete(file);
    }

    private static double median(double[] costs) {
        double[] sorted = costs.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static org.slf4j.Logger logback(Appender<ILoggingEvent> appender) {
        LoggerContext context = new LoggerContext();
        context.setMDCAdapter(new LogbackMDCAdapter());
        appender.setContext(context);
        if (appender instanceof FileAppender<ILoggingEvent> file) {
            PatternLayoutEncoder encoder = new PatternLayoutEncoder();
            encoder.setContext(context);
            encoder.setPattern("%d{yyyy-MM-dd HH:mm:ss.SSS} [%thread] %-5level %logger - %msg%n");
            encoder.start();
            file.setEncoder(encoder);
        }
        appender.start();
        ch.qos.logback.classic.Logger logger = context.getLogger("mount");
        logger.setAdditive(false);
        logger.addAppender(appender);
        return logger;
    }

    private static FileAppender<ILoggingEvent> file(Path path, boolean flushed) {
        FileAppender<ILoggingEvent> appender = new FileAppender<>();
        appender.setFile(path.toString());
        appender.setImmediateFlush(flushed);
        appender.setPrudent(false);
        return appender;
    }
}
