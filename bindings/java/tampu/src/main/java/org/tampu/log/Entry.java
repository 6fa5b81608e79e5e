package org.tampu.log;

import java.util.ArrayList;
import java.util.List;
import org.tampu.internal.call.LogCore;
import org.tampu.internal.call.LogEvent;

/** A record that is being written, with values beside its message. */
public final class Entry {
    private final LogCore core;
    private final LogCore.KnownVoice voice;
    private final Level level;
    private final boolean enabled;
    private List<Object> data;
    private Throwable cause;

    Entry(LogCore core, LogCore.KnownVoice voice, Level level, boolean enabled) {
        this.core = core;
        this.voice = voice;
        this.level = level;
        this.enabled = enabled;
    }

    /** Adds a named value. */
    public Entry data(String name, Object value) {
        if (enabled) {
            data = data == null ? new ArrayList<>(4) : data;
            data.add(name);
            data.add(value);
        }
        return this;
    }

    /** Adds an exception, which becomes an error chain. */
    public Entry cause(Throwable thrown) {
        cause = thrown;
        return this;
    }

    /** Stores the record. Each <code>{}</code> in the message stands for an argument. */
    public void log(String message, Object... arguments) {
        if (!enabled) {
            return;
        }
        LogEvent event = LogCore.event();
        event.level = level.number();
        event.voice = voice;
        event.message = message;
        event.arguments = arguments;
        event.count = arguments.length;
        event.thrown = cause;
        for (int at = 0; data != null && at < data.size(); at += 2) {
            event.data((String) data.get(at), data.get(at + 1));
        }
        event.takeException();
        core.log(event);
    }
}
