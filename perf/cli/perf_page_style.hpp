// SPDX-License-Identifier: BSD-2-Clause
// The style of the report's page. Colours are those of Okabe and Ito, which people with any kind of
// colour vision tell apart, darkened or lightened for their background.
#pragma once

namespace verbatim::cli {

inline constexpr const char* kPageStyle = R"(
:root{--page:#f6f7f9;--card:#fff;--ink:#1b2530;--soft:#5c6875;--rule:#dfe4ea;--grid:#e9edf1;
--floor:#7d8894;--good:#00785a;--bad:#b8400a;
--c0:#0072b2;--c1:#c74e00;--c2:#00835f;--c3:#ab4a87;--c4:#806500;--c5:#3487bd;--c6:#5a4fb0;--c7:#4c555e}
@media (prefers-color-scheme:dark){:root{--page:#11161c;--card:#1a2129;--ink:#e8edf2;--soft:#9aa7b4;
--rule:#2f3944;--grid:#262f39;--floor:#8593a1;--good:#3ecf9f;--bad:#ff9257;
--c0:#56b4e9;--c1:#ff8f4f;--c2:#2fcb9b;--c3:#e79ac6;--c4:#e6c229;--c5:#9ad1f5;--c6:#a99dff;--c7:#bcc6d0}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1040px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:27px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:19px;margin:40px 0 4px}
h3{font-size:15px;margin:18px 0 6px;font-weight:600}
p{margin:4px 0 12px;max-width:76ch}
.soft,p.note{color:var(--soft)}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:16px 18px;margin:12px 0;
overflow-x:auto}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(205px,1fr));gap:12px;margin:22px 0 8px}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px}
.tile b{display:block;font-size:25px;line-height:1.25;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px;display:block}
.badge{display:inline-block;border-radius:999px;padding:2px 11px;font-size:13px;border:1px solid currentColor}
.badge.good{color:var(--good)}.badge.bad{color:var(--bad)}
.pair{display:grid;grid-template-columns:repeat(auto-fill,minmax(420px,1fr));gap:12px}
.pair .card{margin:0}
svg{display:block;width:100%;height:auto;min-width:420px}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg text.tick{fill:var(--soft);font-size:11.5px}
svg text.name{font-weight:600;font-size:12.5px}
svg text.faint{fill:var(--soft)}
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.floor{stroke:var(--floor);stroke-width:1.4;stroke-dasharray:6 4;fill:none}
.curve{fill:none;stroke-width:2.2;stroke-linejoin:round}
.base{fill:none;stroke-width:1.5;stroke-dasharray:1.5 3.5;stroke-linecap:round}
.leader{fill:none;stroke:var(--rule)}
.dot{stroke:var(--card);stroke-width:1.2}
.bar{fill:var(--c0)}.outline{fill:none;stroke:var(--c1);stroke-width:1.3}
.mark{stroke:var(--soft);stroke-dasharray:2 3}
line.worse{stroke:var(--bad);stroke-width:3}line.better{stroke:var(--good);stroke-width:3}
line.same{stroke:var(--floor);stroke-width:1.5}
.point.worse{fill:var(--bad)}.point.better{fill:var(--good)}
.point.same{fill:var(--card);stroke:var(--floor);stroke-width:1.5}
.curve.s0,.base.s0{stroke:var(--c0)}.curve.s1,.base.s1{stroke:var(--c1)}.curve.s2,.base.s2{stroke:var(--c2)}
.curve.s3,.base.s3{stroke:var(--c3)}.curve.s4,.base.s4{stroke:var(--c4)}.curve.s5,.base.s5{stroke:var(--c5)}
.curve.s6,.base.s6{stroke:var(--c6)}.curve.s7,.base.s7{stroke:var(--c7)}
.dot.s0,svg text.t0{fill:var(--c0)}.dot.s1,svg text.t1{fill:var(--c1)}.dot.s2,svg text.t2{fill:var(--c2)}
.dot.s3,svg text.t3{fill:var(--c3)}.dot.s4,svg text.t4{fill:var(--c4)}.dot.s5,svg text.t5{fill:var(--c5)}
.dot.s6,svg text.t6{fill:var(--c6)}.dot.s7,svg text.t7{fill:var(--c7)}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--soft);text-align:right;padding:4px 9px;border-bottom:1px solid var(--rule);
white-space:nowrap}
td{text-align:right;padding:3px 9px;border-bottom:1px solid var(--grid);white-space:nowrap}
th.l,td.l{text-align:left}td.wide{white-space:normal;text-align:left;color:var(--soft)}
td.two{white-space:normal;text-align:left}td.two span{display:block;color:var(--soft);font-size:12px}
tr:last-child td{border-bottom:0}
td.good{color:var(--good)}td.bad{color:var(--bad);font-weight:600}
details summary{cursor:pointer;font-weight:600;padding:4px 0}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}}
)";

}  // namespace verbatim::cli
