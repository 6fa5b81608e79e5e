package org.tampu.event;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;

/**
 * Publishes attributes.
 *
 * <pre>{@code
 * Attribute pressure = new EventServer(gateway).declare("sr/vacuum/g1/p", DataType.DOUBLE, Map.of("unit", "mbar"));
 * pressure.push(Value.of(1e-9));
 * }</pre>
 */
public final class EventServer {
    private final Gateway gateway;

    /** Makes a server on a session. */
    public EventServer(Gateway gateway) {
        this.gateway = gateway;
    }

    /**
     * Declares a scalar attribute.
     *
     * @param config further members of its configuration, as {@code event/list} has them: {@code unit}, {@code label},
     *     {@code limits}, {@code criteria}, {@code max_x}, ...
     */
    public Attribute declare(String name, DataType type, Map<String, Object> config) throws GatewayException {
        return declare(name, type, "scalar", config);
    }

    /** Declares an attribute of the format {@code scalar}, {@code spectrum} or {@code image}. */
    public Attribute declare(String name, DataType type, String format, Map<String, Object> config) throws GatewayException {
        return declare(name, type, format, config, Set.of());
    }

    /** Declares an attribute with options. */
    public Attribute declare(String name, DataType type, String format, Map<String, Object> config, Set<AttributeOption> options)
            throws GatewayException {
        Map<String, Object> full = new LinkedHashMap<>();
        full.put("name", name);
        full.put("data_type", type.label());
        full.put("format", format);
        full.putAll(config);
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("attribute", full);
        options.forEach(option -> body.put(option.member(), true));
        return new Attribute(gateway.session(), name, type, format, body);
    }
}
