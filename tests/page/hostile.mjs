// Text of a model that tries to run scripts and load resources. The page must show it as text.
export const kHostile = `<script>window.hit = 1</script>

<img src=x onerror="window.hit = 2"> <svg onload="window.hit = 3"></svg>

[one](javascript:window.hit=4) [two](JaVaScRiPt:window.hit=5) [three](data:text/html,<script>window.hit=6</script>)
[four]( javascript:window.hit=7) [five](&#106;avascript:window.hit=8) [six](vbscript:x) <javascript:window.hit=9>

![picture](http://evil.invalid/pixel.png) ![p](javascript:alert(1)) <iframe src="http://evil.invalid/"></iframe>

[fine](https://example.invalid/a_(b)) and https://example.invalid/bare?x=1, [bad"onclick=alert(1)](https://example.invalid/"onmouseover="alert(1))

| a | b |
|---|---|
| <b onclick=alert(1)>x</b> | [t](javascript:alert(2)) |

- <style>body { display: none }</style>
- <a href="javascript:alert(3)">x</a>
- <form action="http://evil.invalid/"><input autofocus onfocus=alert(4)></form>

\`\`\`html" onclick="alert(5)
</code></pre><script>window.hit = 10</script>
\`\`\`

\`\`\`html
<img src=x onerror="window.hit = 13"><script>window.hit = 14</script></code></pre><svg onload='window.hit = 15'>
\`\`\`

$<img src=x onerror=window.hit=16>$ \\(<script>window.hit = 17</script>\\) \\[ [x](javascript:window.hit=18) \\]

<think><script>window.hit = 19</script></think>

> # <base href="http://evil.invalid/"> <meta http-equiv=refresh content="0;url=http://evil.invalid/">

<!-- <script>window.hit = 11</script> --> <![CDATA[ x ]]> &lt;script&gt;window.hit = 12&lt;/script&gt;
`;

// Text that takes a careless Markdown parser very long: many unclosed marks, and deep nesting.
export const kTiring = ["*".repeat(6000), "`".repeat(3000), "[".repeat(6000), "![](".repeat(1500), "*a ".repeat(3000),
  "**a*".repeat(2000), ">".repeat(3000), "- ".repeat(2000), "_a_".repeat(2000), "|".repeat(4000),
  "|a".repeat(900) + "\n" + "|-".repeat(900), "#".repeat(4000), " ".repeat(5000) + "x", "<".repeat(5000),
  "1) ".repeat(1000), "http://".repeat(900), "~~".repeat(2000), "\\".repeat(5000), "$".repeat(600),
  "$a".repeat(200), "$$ ".repeat(150), "\\(".repeat(200), "\\[ a ".repeat(100), "|$a|".repeat(100), "<think>\n".repeat(50) + "</think>",
  "```js\n" + "/*".repeat(200) + "\n" + "\"a\\".repeat(200) + "\n```", "a".repeat(20000)].join("\n\n");

export const kPlain = `## Why the sky is blue

Sunlight is a mix of **all colours**. Air scatters *short* waves far more than long ones; the strength goes with the
fourth power of the frequency, \`I ~ 1/λ⁴\`. See [Rayleigh scattering](https://en.wikipedia.org/wiki/Rayleigh_scattering).

| Colour | Wavelength | Scattered |
|:-------|-----------:|----------:|
| Blue   | 450 nm     | 4.4 ×     |
| Green  | 530 nm     | 2.3 ×     |
| Red    | 650 nm     | 1 ×       |

1. Light comes in from the sun.
2. The air sends blue out to *all sides*:
   - at noon from a short way,
   - in the evening from a long one.
3. What is left is red.

\`\`\`python
def scattered(wavelength, reference=650):
    """How much more than at the reference."""
    return (reference / wavelength) ** 4

print(f"{scattered(450):.1f}")
\`\`\`

> In short: the sky is blue because **blue turns corners**.
`;

// The text as tokens, most of them drafted.
export function pieces(text) {
  let depth = 0;
  return text.match(/\s*\S{1,5}|\s+$/g).map((word) => ({ text: word, depth: (depth = (depth * 7 + word.length) % 6) }));
}
