package org.tampu.internal.call;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.text.MessageFormat;
import java.time.Instant;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.tampu.internal.ring.RingPool;
import org.tampu.log.LogSettings;

/**
 * Parts that all loggers, handlers and appenders of one source share: its rings, its sites and its voices.
 *
 * <p>A call stores raw arguments; the node makes the text. Exceptions become error chains of whole records. There is no
 * thread here: the node reads the rings while the process lives, and when it has died.
 */
public final class LogCore {
    /** Levels are counted by ACS's number. */
    private static final int LEVELS = 12;
    /** Loggers with different fields that stand in the dictionary; records of further ones are stored whole. */
    private static final int VOICES_MAX = 16_384;

    /** Longest wait at the end of the process for records in a queue. */
    private static final long END_NANOS = 2_000_000_000;

    private static final Map<Key, LogCore> OPEN = new ConcurrentHashMap<>();
    private static final ThreadLocal<Mine> MINE = ThreadLocal.withInitial(Mine::new);

    private record Key(Path run, String domain, String source) {}

    /** Memory that a thread uses again and again; null while it is in use. */
    private static final class Mine {
        private Payload payload = new Payload();
        private LogEvent event = new LogEvent();
    }

    /** Fields of a logger, with their number in the dictionary. */
    public static final class KnownVoice {
        final Voice voice;
        private final int id;

        private KnownVoice(Voice voice, int id) {
            this.voice = voice;
            this.id = id;
        }

        /** Returns the fields. */
        public Voice fields() {
            return voice;
        }
    }

    private final LogSettings settings;
    /** Null on a host without a node. */
    private final RingPool pool;
    /** Null on a host with a node. */
    private final RemoteLog remote;
    private final SiteTable sites;
    private final int made;
    private final int locate;
    private final ConcurrentHashMap<Voice, KnownVoice> voices = new ConcurrentHashMap<>();
    private final AtomicLong chains = new AtomicLong();

    private LogCore(LogSettings settings) throws IOException {
        this.settings = settings;
        this.locate = settings.locate() == null ? LEVELS : settings.locate().number();
        if (settings.gateway() != null) {
            this.remote = new RemoteLog(settings.connector(), settings.domain(), settings.source(), settings.token());
            this.pool = null;
            this.sites = null;
            this.made = 0;
            return;
        }
        this.remote = null;
        this.pool = new RingPool(settings.runDirectory(), settings.domain(), settings.source(), settings.process(),
                settings.host(), settings.ringBytes(), settings.maxRings());
        this.sites = new SiteTable(pool, LEVELS);
        this.made = pool.defineMade("log batch".getBytes(StandardCharsets.US_ASCII));
    }

    /** Returns the one core of this source in this process; the first caller's settings count. */
    public static LogCore open(LogSettings settings) throws IOException {
        Key key = new Key(settings.runDirectory(), settings.domain(), settings.source());
        LogCore found = OPEN.get(key);
        if (found != null) {
            return found;
        }
        synchronized (OPEN) {
            found = OPEN.get(key);
            if (found == null) {
                found = new LogCore(settings);
                if (OPEN.isEmpty()) {
                    Runtime.getRuntime().addShutdownHook(new Thread(LogCore::end, "tampu-end"));
                }
                OPEN.put(key, found);
            }
            return found;
        }
    }

    /** The process ends in order: what is left in the rings is no remainder of a death. */
    private static void end() {
        for (LogCore core : OPEN.values()) {
            if (core.pool != null) {
                core.pool.ended();
            } else {
                // What is in the queue would end with the process.
                core.remote.flush(END_NANOS);
            }
        }
    }

    /** Returns the settings of the first caller. */
    public LogSettings settings() {
        return settings;
    }

    /** Returns the number of records of this process that found no room. */
    public long lost() {
        return pool != null ? pool.lost() : remote.lost();
    }

    /** Waits until everything logged so far is with its keepers; returns whether it is. */
    public boolean flush(long nanos) {
        return pool != null ? pool.flush(nanos) : remote.flush(nanos);
    }

    /** Returns fields of a logger for {@link LogEvent#voice}. */
    public KnownVoice voice(Voice voice) {
        KnownVoice found = voices.get(voice);
        if (found != null) {
            return found;
        }
        if (voices.size() >= VOICES_MAX) {
            return new KnownVoice(voice, 0);
        }
        return voices.computeIfAbsent(voice, each -> new KnownVoice(each, pool == null ? 0 : pool.defineVoice(each.encode())));
    }

    /** Returns an empty event for a call of this thread; {@link #log} takes it back. */
    public static LogEvent event() {
        Mine mine = MINE.get();
        LogEvent event = mine.event;
        mine.event = null;
        return event == null ? new LogEvent() : event.reset();
    }

    /** Stores a record. Returns false if it is lost, which is counted and reported. */
    public boolean log(LogEvent event) {
        Mine mine = MINE.get();
        // A value whose text logs finds none here and gets its own.
        Payload payload = mine.payload;
        mine.payload = null;
        if (payload == null) {
            payload = new Payload();
        }
        try {
            return log(event, payload);
        } finally {
            mine.payload = payload;
            mine.event = event;
        }
    }

    private boolean log(LogEvent event, Payload payload) {
        if (event.message == null) {
            event.message = "null";
        }
        if (event.where == null && event.level >= locate) {
            event.where = Caller.find();
        }
        if (event.thrown != null || event.rare != null || event.voice.id == 0) {
            return whole(event, payload);
        }
        SiteTable.Family family = null;
        if (event.count > 0) {
            var style = event.isNumbered ? SiteTable.Style.NUMBERS : SiteTable.Style.BRACES;
            family = sites.of(event.level, style, event.message, event.where);
        }
        long floats = 0;
        if (family == null) {
            family = sites.text(event.level, event.where);
            payload.begin(1 + event.data);
            payload.text(text(event));
        } else {
            int places = family.template.arguments();
            payload.begin(places + event.data);
            for (int at = 0; at < places; at++) {
                Object value = at < event.count ? event.arguments[at] : "{}";
                if (value instanceof Double || value instanceof Float) {
                    floats |= 1L << at;
                }
                payload.put(value);
            }
        }
        for (int at = 0; at < event.data; at++) {
            payload.put(event.values[at]);
        }
        int site = sites.id(family, floats, event.names, event.data);
        if (site == 0) {
            return whole(event, payload);
        }
        return pool.write(payload.bytes, payload.length(), site, event.voice.id, event.time, event.level, event.thread);
    }

    /** Returns the message with its values. */
    private static String text(LogEvent event) {
        if (event.count == 0) {
            return event.message;
        }
        Object[] arguments = Arrays.copyOf(event.arguments, event.count);
        if (!event.isNumbered) {
            return Template.ofBraces(event.message).render(arguments);
        }
        Template template = Template.ofNumbers(event.message);
        try {
            return template == null ? new MessageFormat(event.message).format(arguments) : template.render(arguments);
        } catch (IllegalArgumentException bad) {
            return event.message;
        }
    }

    /** Stores the record whole, and its exception as an error chain behind it. */
    private boolean whole(LogEvent event, Payload payload) {
        WholeRecord record = new WholeRecord();
        record.voice = event.voice.voice;
        record.time = event.time != 0 ? event.time : now();
        record.level = event.level;
        record.message = text(event);
        record.at(event.where);
        record.host = settings.host();
        record.process = settings.process();
        record.thread = event.thread != null ? event.thread : Thread.currentThread().getName();
        List<Map.Entry<String, String>> data = new ArrayList<>();
        for (int at = 0; at < event.data; at++) {
            String value = Texts.of(event.values[at]);
            if (!record.takeId(event.names[at], value)) {
                data.add(new SimpleImmutableEntry<>(event.names[at], value));
            }
        }
        record.data = data;
        if (event.rare != null) {
            record.host = event.rare.host.isEmpty() ? record.host : event.rare.host;
            record.process = event.rare.process.isEmpty() ? record.process : event.rare.process;
            record.uri = event.rare.uri;
            record.priority = event.rare.priority;
            record.stackId = event.rare.stackId;
            record.stackLevel = event.rare.stackLevel;
        }
        if (event.thrown == null) {
            return put(record, payload, event);
        }
        if (record.stackId.isEmpty()) {
            record.stackId = (pool != null ? pool.incarnation() : remote.incarnation()) + "-" + chains.incrementAndGet();
            record.stackLevel = 0;
        }
        boolean kept = put(record, payload, event);
        for (WholeRecord link : ErrorChain.of(record, event.thrown)) {
            kept &= put(link, payload, event);
        }
        return kept;
    }

    private boolean put(WholeRecord record, Payload payload, LogEvent event) {
        if (remote != null) {
            return remote.put(record);
        }
        payload.whole(record.toPayload());
        return pool.write(payload.bytes, payload.length(), made, 0, record.time, event.level, event.thread);
    }

    private static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }
}
