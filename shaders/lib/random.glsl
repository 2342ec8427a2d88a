// The sampling noise of core/rng.cpp: Philox4x32-10 and a logarithm of multiplies and adds.

uvec4 philox(uvec2 key, uvec4 c) {
    for (int round = 0; round < 10; ++round) {
        uint a_high, a_low, b_high, b_low;
        umulExtended(0xD2511F53u, c.x, a_high, a_low);
        umulExtended(0xCD9E8D57u, c.z, b_high, b_low);
        c = uvec4(b_high ^ c.y ^ key.x, b_low, a_high ^ c.w ^ key.y, a_low);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// (bits + 1/2) / 2^32.
float unit_of(uint bits) {
    precise float whole = float(bits >> 16) * 65536.0 + float(bits & 0xffffu);
    precise float unit = (whole + 0.5) * 2.3283064365386962890625e-10;
    return unit;
}

// log(1 + f) + exponent * ln 2.
float log_parts(float f, float exponent) {
    precise float z = f * f;
    precise float q = 7.0376836292e-2;
    q = q * f + -1.1514610310e-1;
    q = q * f + 1.1676998740e-1;
    q = q * f + -1.2420140846e-1;
    q = q * f + 1.4249322787e-1;
    q = q * f + -1.6668057665e-1;
    q = q * f + 2.0000714765e-1;
    q = q * f + -2.4999993993e-1;
    q = q * f + 3.3333331174e-1;
    precise float y = f * (z * q);
    y = y + exponent * -2.12194440e-4;
    y = y + -0.5 * z;
    precise float sum = (f + y) + exponent * 0.693359375;
    return sum;
}

float log_positive(float x) {
    uint shifted = floatBitsToUint(x) - 0x3f3504f3u;
    int exponent = int(shifted) >> 23;
    precise float f = uintBitsToFloat((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    return log_parts(f, float(exponent));
}

float gumbel_of(uint word) {
    float u = unit_of(word);
    precise float logarithm =
        u < 0.29289 ? log_parts(-u, 0.0) : log_positive(unit_of(~word));
    precise float exponential = -logarithm;
    precise float noise = -log_positive(exponential);
    return noise;
}
